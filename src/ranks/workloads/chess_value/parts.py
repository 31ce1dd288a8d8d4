"""Parts of labelled positions, read as one list.

Legend: N positions of a part, B positions that are read, K parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.folder import RunFolder
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.workloads.chess_value.labels.label import Labelled


class LabelledParts:
    """Positions with indices that run through all parts. Arrays may be memory-mapped: only what is read is loaded."""

    def __init__(self, parts: Sequence[Labelled] = ()) -> None:
        self.parts = list(parts)
        self._end_K = np.cumsum([len(part.boards_N13) for part in parts], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._end_K[-1]) if len(self._end_K) else 0

    def read(self, ids_B: NDArray[np.int64]) -> Labelled:
        """The positions with these indices, in their order."""
        part_B = np.searchsorted(self._end_K, ids_B, side="right")
        start_K = np.concatenate([[0], self._end_K])
        order_B = part_B.argsort(kind="stable")
        bounds_K = np.searchsorted(part_B[order_B], np.arange(len(self.parts) + 1)).tolist()
        found: list[NDArray[Any]] = [np.empty((len(ids_B), *each.shape[1:]), each.dtype) for each in self.parts[0]]
        for number, (first, end) in enumerate(itertools.pairwise(bounds_K)):
            rows_B = order_B[first:end]
            for into, column in zip(found, self.parts[number], strict=True):
                into[rows_B] = column[ids_B[rows_B] - start_K[number]]
        return Labelled(*found)


def saved_parts(run: Path, name: str) -> LabelledParts:
    """The parts of a run that lie in its folder `name` of kept files, without damaged ones."""
    folder = KeptFolder(RunFolder(run).kept)
    parts: list[Labelled] = []
    for file in folder.listing(name):
        try:
            folder.verify(file)
            parts.append(Labelled(**folder.open(file)))
        except (DamagedFile, TypeError):
            continue
    return LabelledParts(parts)
