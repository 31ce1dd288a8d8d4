"""The positions after random moves.

Legend: N positions, K moves of each at most, M positions after them, 13 words of a position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import carray, float64, int64, types, uint16, uint64
from numpy.typing import NDArray

from ranks.chess.core.moves import MAX_MOVES, MOST_WORDS, generate, list_moves, room_for_sets
from ranks.chess.core.position import load, make, store
from ranks.chess.core.tables import Words
from ranks.chess.core.words import WORDS
from ranks.jit import kernel


class Children(NamedTuple):
    """Positions, and which position each comes from."""

    boards_M13: Words
    parent_M: NDArray[np.int64]


@kernel(types.int64(uint64[:, ::1], float64[:, ::1], uint16[::1], uint64[:, ::1], int64[::1]))
def _play_random(
    boards_N13: Words,
    uniform_NK: NDArray[np.float64],
    moves: NDArray[np.uint16],
    boards_M13: Words,
    parent_M: NDArray[np.int64],
) -> int:
    """Write the children of all positions. Returns M."""
    sets = carray(room_for_sets(), MOST_WORDS)
    written = 0
    for row in range(len(boards_N13)):
        p = load(boards_N13, row)
        stop, _ = generate(p, sets)
        count = list_moves(sets, stop, moves, 0)
        for k in range(min(uniform_NK.shape[1], count)):  # the first steps of a Fisher-Yates shuffle
            other = k + np.int64(uniform_NK[row, k] * (count - k))
            moves[k], moves[other] = moves[other], moves[k]
            store(boards_M13, written, make(p, np.uint64(moves[k])))
            parent_M[written] = row
            written += 1
    return written


def random_children(boards_N13: Words, uniform_NK: NDArray[np.float64]) -> Children:
    """The positions after K different random moves of each position, or after all its moves where it has fewer.

    boards: uint64[N, 13]. uniform: float64[N, K] in [0, 1)."""
    room = uniform_NK.size
    boards_M13, parent_M = np.empty((room, WORDS), np.uint64), np.empty(room, np.int64)
    moves = np.empty(MAX_MOVES, np.uint16)
    written = _play_random(
        np.ascontiguousarray(boards_N13), np.ascontiguousarray(uniform_NK), moves, boards_M13, parent_M
    )
    return Children(boards_M13[:written], parent_M[:written])
