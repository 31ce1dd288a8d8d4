"""The crosstable of a pool: the results of the pairs of games of each two players."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ranks.rating.report import WinsLossesDraws

Ints = np.ndarray[Any, np.dtype[np.int64]]
Points = Literal[0, 1, 2]
"""The points of one game in half points: 0 loss, 1 draw, 2 win."""


class Crosstable:
    """The pairs of games of a pool.

    The two games of a pair have the same opening and reversed colours."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, str], Ints] = defaultdict(lambda: np.zeros((3, 3), np.int64))

    def add(self, first: str, second: str, with_white: Points, with_black: Points, num: int = 1) -> None:
        """Count a pair of games, by the points of `first`."""
        if first == second:
            raise ValueError(f"{first} cannot meet itself")
        if first < second:
            self._counts[first, second][with_white, with_black] += num
        else:
            self._counts[second, first][2 - with_black, 2 - with_white] += num

    @property
    def players(self) -> list[str]:
        """The names of all players, sorted."""
        return sorted({name for pairing in self._counts for name in pairing})

    @property
    def pairings(self) -> Mapping[tuple[str, str], Ints]:
        """int64[3, 3] by (first, second): pairs by first's points with white and with black."""
        return {pairing: self._counts[pairing] for pairing in sorted(self._counts)}

    def between(self, first: str, second: str) -> Ints:
        """int64[3, 3]: the pairs of these two, by first's points with white and with black."""
        if first < second:
            return self._counts.get((first, second), np.zeros((3, 3), np.int64))
        return self._counts.get((second, first), np.zeros((3, 3), np.int64))[::-1, ::-1].T

    def pentanomial(self, first: str, second: str) -> list[int]:
        """Pairs in which `first` made 0, 0.5, 1, 1.5 and 2 points."""
        pairs_33 = self.between(first, second)[::-1]
        return [int(np.trace(pairs_33, offset)) for offset in range(-2, 3)]

    def games(self, first: str, second: str) -> WinsLossesDraws:
        """The single games of these two, counted for `first`."""
        pairs_33 = self.between(first, second)
        lost, drawn, won = (pairs_33.sum(0) + pairs_33.sum(1)).tolist()
        return WinsLossesDraws(won, lost, drawn)
