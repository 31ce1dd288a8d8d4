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
        most = np.min_scalar_type(len(self.parts))  # numpy sorts numbers of 8 and 16 bits in linear time
        part_B = np.searchsorted(self._end_K, ids_B, side="right").astype(most)
        order_B = part_B.argsort(kind="stable")
        start_K = np.concatenate([[0], self._end_K])
        row_B = (ids_B - start_K[part_B])[order_B]
        ends_K = np.bincount(part_B, minlength=len(self.parts)).cumsum().tolist()
        found: list[NDArray[Any]] = [np.empty((len(ids_B), *each.shape[1:]), each.dtype) for each in self.parts[0]]
        for part, (first, end) in zip(self.parts, itertools.pairwise([0, *ends_K]), strict=True):
            if first < end:
                for into, column in zip(found, part, strict=True):  # "clip" writes to `out` without a copy
                    column.take(row_B[first:end], axis=0, out=into[first:end], mode="clip")
        place_B = np.empty_like(order_B)
        place_B[order_B] = np.arange(len(order_B))
        return Labelled(*(column[place_B] for column in found))


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
