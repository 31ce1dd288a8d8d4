"""What a label belongs to: a position without its past.

A label is a function of the pieces, the side to move, castling and en passant. Engines also count the halfmove clock,
so all positions are labelled with the clock at 0; else two positions with one key would have two labels.

Legend: N positions, 13 words of a position (ranks.chess.core.position).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranks.chess.core.rules import CLOCKS_WORD, KEY_WORD
from ranks.chess.fen import format_fen
from ranks.splitmix64 import GOLDEN_GAMMA, MIX_1, MIX_2

FRESH_CLOCKS = np.uint64(1 << 16)
"""Halfmove clock 0, move 1, no repetition."""


class PositionKeys:
    """Two independent hashes of positions: the Zobrist key, and a check that tells positions with equal keys apart."""

    def __init__(self, boards_N13: NDArray[np.uint64]) -> None:
        self.key_N = np.ascontiguousarray(boards_N13[:, KEY_WORD])
        """uint64[N]: the Zobrist keys."""
        self.check_N = checks(boards_N13)
        """uint64[N]: splitmix64 over the words before the clocks."""


def checks(boards_N13: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """uint64[N]: a hash of the words 0 to 10, which does not use the Zobrist key."""
    state_N = np.zeros(len(boards_N13), np.uint64)
    for word in range(CLOCKS_WORD):
        state_N = _mix((state_N ^ boards_N13[:, word]) + np.uint64(GOLDEN_GAMMA))
    return state_N


def fresh_fen(words_13: NDArray[np.uint64]) -> str:
    """The FEN of a position with the clocks `0 1`."""
    words = words_13.copy()
    words[CLOCKS_WORD] = FRESH_CLOCKS
    return format_fen(words)


def _mix(x_N: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x_N = (x_N ^ (x_N >> np.uint64(30))) * np.uint64(MIX_1)
    x_N = (x_N ^ (x_N >> np.uint64(27))) * np.uint64(MIX_2)
    return x_N ^ (x_N >> np.uint64(31))
