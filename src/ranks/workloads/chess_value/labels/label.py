"""Positions with their labels.

Legend: N positions, 13 words of a position (ranks.chess.core.words).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NO_SCORE = -32768
"""In place of the centipawns: no score is known."""
NO_RESULT = 2
"""In place of the result: nobody knows how the game would have ended."""
RESULTS = {"1-0": 1, "0-1": -1, "1/2-1/2": 0}
"""For white."""
SOURCES = ("own", "stockfish", "pgn", "csv", "epd")
"""Where a position is from: own games, games against Stockfish, files."""


class Labelled(NamedTuple):
    """Positions with scores and results, for the side to move."""

    boards_N13: NDArray[np.uint64]
    cp_N: NDArray[np.int16]
    """Centipawns; NO_SCORE where no score is known."""
    result_N: NDArray[np.int8]
    """1 won, 0 drawn, -1 lost; NO_RESULT where it is unknown."""
    source_N: NDArray[np.int8]
    """Index in SOURCES."""

    def rows(self, start: int, stop: int | None) -> Labelled:
        """Consecutive positions."""
        part = slice(start, stop)
        return Labelled(self.boards_N13[part], self.cp_N[part], self.result_N[part], self.source_N[part])
