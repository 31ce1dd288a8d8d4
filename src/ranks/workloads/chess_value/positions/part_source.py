"""Positions of folders that `ranks chess-value label` wrote, as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ranks.workloads.chess_value.labels.label import Labelled
from ranks.workloads.chess_value.positions.part_files import VALIDATION, open_parts
from ranks.workloads.chess_value.positions.part_folder import files_of
from ranks.workloads.chess_value.positions.sourced import SourcedPositions, joined

CHUNK = 1 << 12
"""Positions that are read at a time."""


def part_positions(folder: Path) -> Iterator[SourcedPositions]:
    """The positions of a folder in chunks, each with its share of those that validate. Files are memory-mapped. Raises
    UserError."""
    parts = {name: open_parts(files) for name, files in files_of(folder, verify=False).items()}
    steps = -(-sum(map(len, parts.values())) // CHUNK)
    for step in range(steps):
        found: list[SourcedPositions] = []
        for name, part in parts.items():
            first, end = (len(part) * at // steps for at in (step, step + 1))
            found.append(_sourced(part.read(np.arange(first, end)), validates=name == VALIDATION))
        yield joined(found)


def _sourced(labelled: Labelled, *, validates: bool) -> SourcedPositions:
    return SourcedPositions(*labelled, np.full(len(labelled.boards_N13), validates))
