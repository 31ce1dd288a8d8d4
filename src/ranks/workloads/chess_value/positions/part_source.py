"""Positions of folders that `ranks chess-value label` wrote, as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.errors import UserError
from ranks.workloads.chess_value.labels.label import Labelled
from ranks.workloads.chess_value.positions.part_files import TRAIN, VALIDATION, PartFiles, as_batch, part_files
from ranks.workloads.chess_value.positions.sourced import SourcedPositions, joined

CHUNK = 1 << 12
"""Positions that are read at a time."""


def part_positions(folder: Path) -> Iterator[SourcedPositions]:
    """The positions of a folder in chunks, each with its share of those that validate. Files are memory-mapped. Raises
    UserError."""
    parts = {name: PartFiles(files, as_batch) for name, files in files_of(folder, verify=False).items()}
    steps = -(-sum(map(len, parts.values())) // CHUNK)
    for step in range(steps):
        found: list[SourcedPositions] = []
        for name, part in parts.items():
            first, end = (len(part) * at // steps for at in (step, step + 1))
            found.append(_sourced(part.read(np.arange(first, end)), validates=name == VALIDATION))
        yield joined(found)


def files_of(folder: Path, *, verify: bool, beat: Callable[[], None] = lambda: None) -> dict[str, list[Path]]:
    """The files with positions that train and that validate. Raises UserError where there are none.

    `verify`, `beat`: see `part_files`."""
    kept = KeptFolder(folder)
    names = [name for name in (TRAIN, VALIDATION) if kept.listing(name)]
    if not names:
        raise UserError(f"the positions of {folder}", "no files of positions", "make them with ranks chess-value label")
    return {name: part_files(folder, name, verify=verify, beat=beat) for name in names}


def _sourced(labelled: Labelled, *, validates: bool) -> SourcedPositions:
    return SourcedPositions(*labelled, np.full(len(labelled.boards_N13), validates))
