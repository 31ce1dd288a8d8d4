"""Labelled positions as files that several runs can share.

    FOLDER/train/00000000-SHA256.safetensors          1,048,576 positions of 108 bytes each; the last file is shorter
    FOLDER/validation/00000000-SHA256.safetensors

Files are written once, named by number and content, and memory-mapped: only what is used is read.

Legend: N positions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ranks.engine.files.disk import writing
from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.kept.kept_file import KeptFile
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.errors import UserError
from ranks.workloads.chess_value.labels.label import Labelled
from ranks.workloads.chess_value.parts import LabelledParts

PART_POSITIONS = 1 << 20
TRAIN, VALIDATION = "train", "validation"


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


def open_parts(files: list[Path]) -> LabelledParts:
    """Files of positions as one list, memory-mapped; their contents are not hashed. Raises UserError where one is no
    such file."""
    return LabelledParts([_opened(file) for file in files])


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
