"""The files of one video in a store: its frames, and what is known about them.

    8c1e...f2.npy     uint8[n, H, W], the frames of one video
    8c1e...f2.json    where they come from, their cut, their time stamps, the sha256 of the .npy; written last

Legend: n frames of the video, H, W pixels.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranks.engine.files.disk import write_durably

HEAD_BYTES = 128
Grey = NDArray[np.uint8]


class DamagedPart(Exception):
    """A file of a part is missing or damaged; the message names it."""


@dataclass(frozen=True)
class StorePart:
    """One video of a store. `source`: the file that it was decoded from; `times_s_N`: float64[n], its time stamps."""

    key: str
    source: Path
    size: tuple[int, int]
    sha256: str
    """Of the frames."""
    times_s_N: NDArray[np.float64]
    warnings: tuple[str, ...]
    missing_frames: int
    """Frames that were left out, because they are damaged or the file lacks them."""
    picture: str | None
    """How the frames were cut and scaled, as `words_of` says it; None in files of older versions, which do not."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n, H, W)."""
        return len(self.times_s_N), *self.size

    def write(self, folder: Path) -> None:
        """Write the .json: the part is whole then. Raises OSError."""
        facts = {
            "source": str(self.source),
            "picture": self.picture,
            "size": self.size,
            "sha256": self.sha256,
            "warnings": self.warnings,
            "missing_frames": self.missing_frames,
            "times_s": self.times_s_N.tolist(),
        }
        temporary = temporary_file(folder, self.key)
        write_durably(temporary, json.dumps(facts).encode())
        os.replace(temporary, folder / f"{self.key}.json")

    @classmethod
    def read(cls, folder: Path, key: str) -> StorePart:
        """Read the .json, and check that the .npy has as many frames. Raises DamagedPart."""
        part = cls._of_json(key, _json_of(folder / f"{key}.json"))
        path = folder / f"{key}.npy"
        try:
            with path.open("rb") as file:
                head, num_bytes = file.read(HEAD_BYTES), os.fstat(file.fileno()).st_size
        except OSError as error:
            raise DamagedPart(f"{path.name} cannot be read ({error.strerror})") from None
        if head != npy_head(part.shape) or num_bytes != HEAD_BYTES + math.prod(part.shape):
            raise DamagedPart(f"{path.name} does not have the {part.shape[0]:,} frames of {key}.json")
        return part

    @classmethod
    def _of_json(cls, key: str, facts: Mapping[str, Any]) -> StorePart:
        try:
            height, width = facts["size"]
            times_s_N = np.array(facts["times_s"], np.float64)
            whole = times_s_N.ndim == 1 and len(times_s_N) > 0 and bool(np.isfinite(times_s_N).all())
            warnings = tuple(str(warning) for warning in facts["warnings"])
            source, sha256, missing = Path(facts["source"]), str(facts["sha256"]), int(facts["missing_frames"])
            picture = None if facts.get("picture") is None else str(facts["picture"])
            part = cls(key, source, (int(height), int(width)), sha256, times_s_N, warnings, missing, picture)
        except (LookupError, TypeError, ValueError) as error:
            raise DamagedPart(f"{key}.json is not what ranks wrote ({type(error).__name__}: {error})") from None
        if not whole:
            raise DamagedPart(f"{key}.json has no time stamps")
        return part


def _json_of(path: Path) -> dict[str, Any]:
    try:
        found: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise DamagedPart(f"{path.name} cannot be read ({error.strerror})") from None
    except ValueError:
        raise DamagedPart(f"{path.name} is no JSON") from None
    if not isinstance(found, dict):
        raise DamagedPart(f"{path.name} is not what ranks wrote")
    return found  # pyright: ignore[reportUnknownVariableType]


def npy_head(shape: tuple[int, ...]) -> bytes:
    """The first bytes of a .npy file of version 1.0, padded to HEAD_BYTES."""
    text = repr({"descr": "|u1", "fortran_order": False, "shape": shape})
    magic = b"\x93NUMPY\x01\x00"
    length = HEAD_BYTES - len(magic) - 2
    return magic + length.to_bytes(2, "little") + text.encode().ljust(length - 1) + b"\n"


def temporary_file(folder: Path, key: str) -> Path:
    """Where this process writes a file of a part before it is whole."""
    return folder / f".{key}.{os.getpid()}.tmp"
