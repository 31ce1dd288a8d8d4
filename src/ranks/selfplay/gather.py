"""Arrays of all ranks on every rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ranks.engine.distributed.comm import Comm

Arrays = Mapping[str, NDArray[Any]]


def gather_arrays(comm: Comm, mine: Arrays) -> list[dict[str, NDArray[Any]]]:
    """Every rank's arrays, in rank order; their first dimensions may differ. Every rank calls it."""
    if comm.size == 1:
        return [dict(mine)]
    shapes = comm.gather_objects({name: array.shape for name, array in mine.items()})
    sizes = {name: (array.dtype, array.dtype.itemsize) for name, array in mine.items()}
    lengths = [sum(int(np.prod(shape)) * sizes[name][1] for name, shape in of.items()) for of in shapes]
    packed = torch.zeros(max(lengths), dtype=torch.uint8)
    whole, at = packed.numpy(), 0
    for array in mine.values():
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        whole[at : at + len(data)] = data
        at += len(data)
    found: list[dict[str, NDArray[Any]]] = []
    for rows, of in zip(comm.gather_equal(packed), shapes, strict=True):
        raw, at, arrays = rows.numpy(), 0, dict[str, NDArray[Any]]()
        for name, shape in of.items():
            dtype, itemsize = sizes[name]
            end = at + int(np.prod(shape)) * itemsize
            arrays[name] = raw[at:end].copy().view(dtype).reshape(shape)
            at = end
        found.append(arrays)
    return found
