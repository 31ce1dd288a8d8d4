"""Labelled positions as files that several runs can share.

    FOLDER/train/00000000-SHA256.safetensors          1,048,576 positions of 108 bytes each; the last file is shorter
    FOLDER/validation/00000000-SHA256.safetensors

Files are written once, named by number and content, and memory-mapped: only what is used is read.

Legend: N positions, B positions of a batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ranks.chess.fen import format_fen
from ranks.engine.files.disk import writing
from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.kept.kept_file import KeptFile
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.errors import UserError
from ranks.workloads.chess_value.labels.label import Labelled
from ranks.workloads.chess_value.parts import LabelledParts

T = TypeVar("T")
PART_POSITIONS = 1 << 20
TRAIN, VALIDATION = "train", "validation"


class LabelledBatch(NamedTuple):
    """Labelled positions as tensors on the CPU."""

    boards_B13: Tensor
    """int64: the bits of the 13 words."""
    cp_B: Tensor
    """int16, see `label`."""
    result_B: Tensor
    """int8, see `label`."""
    source_B: Tensor
    """int8, see `label`."""


class PartFiles(Generic[T]):
    """A map-style data set for `ranks.data.stream`: positions with ids that run through all files."""

    on_host = True
    cost = None

    def __init__(self, files: list[Path], to_batch: Callable[[Labelled], T]) -> None:
        """Open files of positions. Raises UserError where one is no such file; its content is not hashed."""
        self._files = files
        self._to_batch = to_batch
        self._parts = LabelledParts([_opened(file) for file in files])
        self.sha256 = hashlib.sha256("".join(file.name for file in files).encode()).hexdigest()
        """Of the names of the files, which hold the sha256 of their contents."""

    def __len__(self) -> int:
        return len(self._parts)

    def gather(self, ids: Tensor) -> T:
        """int64[B] ids -> `to_batch` of these positions, in their order."""
        return self._to_batch(self.read(ids.numpy()))

    def read(self, ids_B: NDArray[np.int64]) -> Labelled:
        """The positions with these ids, in their order."""
        return self._parts.read(ids_B)

    def describe(self, item: int) -> str:
        """The FEN of a position."""
        return format_fen(self.read(np.array([item])).boards_N13[0])

    def __getstate__(self) -> dict[str, Any]:
        """For workers: they map the files themselves."""
        return {"_files": self._files, "_to_batch": self._to_batch, "sha256": self.sha256}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._parts = LabelledParts([_opened(file) for file in self._files])


def as_batch(labelled: Labelled) -> LabelledBatch:
    """The arrays as tensors, without a copy."""
    boards_B13 = torch.from_numpy(labelled.boards_N13.view(np.int64))
    return LabelledBatch(boards_B13, *(torch.from_numpy(column) for column in labelled[1:]))


class PartWriter:
    """Writes positions as files of `size` each in FOLDER/NAME, in their order. Memory holds one file's positions."""

    def __init__(self, folder: Path, name: str, size: int = PART_POSITIONS) -> None:
        """Raises UserError where there are such files already: they would mix."""
        if KeptFolder(folder).listing(name):
            found = "it holds files of positions already"
            raise UserError(f"to write positions to {folder / name}", found, "give another folder, or remove it")
        self.files: list[Path] = []
        self._folder, self._name, self._size = folder, name, size
        self._waiting: list[Labelled] = []

    def add(self, labelled: Labelled) -> None:
        """Add positions. Raises UserError where the disk is full."""
        self._waiting.append(labelled)
        while sum(len(part.boards_N13) for part in self._waiting) >= self._size:
            joined = _joined(self._waiting)
            self._write(joined.rows(0, self._size))
            self._waiting = [joined.rows(self._size, None)]

    def end(self) -> list[Path]:
        """Write the last file. Returns all files. Raises UserError where the disk is full."""
        rest = _joined(self._waiting) if self._waiting else None
        if rest is not None and len(rest.boards_N13):
            self._write(rest)
        self._waiting = []
        return self.files

    def _write(self, labelled: Labelled) -> None:
        folder = self._folder
        with writing(f"to write positions to {folder}", folder, "earlier files are intact"):
            folder.mkdir(parents=True, exist_ok=True)
            file = KeptFolder(folder).write(self._name, len(self.files), labelled._asdict())
            self.files.append(folder / file.path)


def part_files(folder: Path, name: str, *, verify: bool = True, beat: Callable[[], None] = lambda: None) -> list[Path]:
    """The files in FOLDER/NAME, in order. Raises UserError where one is damaged or none is there.

    `verify`: compare the content of each with the sha256 in its name. `beat`: is called after each."""
    kept = KeptFolder(folder)
    files = kept.listing(name)
    asked = f"the positions of {folder / name}"
    if not files:
        raise UserError(asked, "no files of positions", "make them with ranks chess-value label")
    for file in files if verify else ():
        try:
            kept.verify(file)
            beat()
        except DamagedFile as damage:
            raise UserError(asked, str(damage), "make the files again with ranks chess-value label") from damage
    return [folder / file.path for file in files]


def _opened(path: Path) -> Labelled:
    folder = path.parent.parent
    try:
        file = KeptFile(f"{path.parent.name}/{path.name}", path.stat().st_size)
        return Labelled(**KeptFolder(folder).open(file))
    except (DamagedFile, OSError, ValueError, TypeError) as error:
        found = str(error) if isinstance(error, DamagedFile) else f"{path}: not a file of positions"
        raise UserError(
            f"the positions of {path}", found, "make the files again with ranks chess-value label"
        ) from error


def _joined(parts: list[Labelled]) -> Labelled:
    return Labelled(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
