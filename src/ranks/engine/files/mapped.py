"""Opens a safetensors file as memory-mapped arrays: the system reads only the pages that are used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ranks.engine.files.regular import DamagedFile, check_size, open_regular
from ranks.engine.files.strict_json import parse_object

DTYPES = {
    **{"BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4"},
    **{"U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8"},
}
"""Names of safetensors -> NumPy."""


def map_arrays(path: Path, *, size: int) -> dict[str, NDArray[Any]]:
    """The arrays of a regular file of exactly `size` bytes, read-only. Raises DamagedFile.

    torch maps the file, since a mapping of Python's own `mmap` holds a descriptor until it ends (before
    Python 3.13), and a process may have about 1,000.
    """
    with open_regular(path) as file:
        check_size(file, path, size)
        if size < 8:
            raise DamagedFile(f"{path}: not a safetensors file")
        storage = torch.UntypedStorage.from_file(f"/dev/fd/{file.fileno()}", shared=False, nbytes=size)
    content = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()  # pyright: ignore[reportArgumentType]
    content.flags.writeable = False
    try:
        start = 8 + int.from_bytes(content[:8].tobytes(), "little")
        if start > size:
            raise ValueError("its header is cut off")
        header = parse_object(content[8:start].tobytes())
        return {name: _array(content[start:], about) for name, about in header.items() if name != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise DamagedFile(f"{path}: not a safetensors file ({error})"[:300]) from None


def _array(data: NDArray[np.uint8], about: Any) -> NDArray[Any]:
    begin, end = about["data_offsets"]
    if not 0 <= begin <= end <= len(data):
        raise ValueError("an array is outside of the file")
    return data[begin:end].view(DTYPES[about["dtype"]]).reshape(about["shape"])
