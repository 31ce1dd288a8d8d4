"""Which positions are quiet: a static evaluation can be right about them.

Legend: N positions, 13 words of a position.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, carray, int64, types, uint16, uint64
from numpy.typing import NDArray

from ranks.chess.core.moves import MAX_MOVES, MOST_WORDS, generate, list_moves, room_for_sets
from ranks.chess.core.position import load
from ranks.chess.engine.search.exchange import gain_of, wins_at_least
from ranks.jit import kernel

WINS_CP = 50
"""A capture or promotion that wins so much by the exchanges on its square makes a position unquiet."""


@kernel(types.void(uint64[:, ::1], boolean[::1], uint16[::1], int64))
def find_quiet(states: NDArray[np.uint64], quiet: NDArray[np.bool_], moves: NDArray[np.uint16], wins_cp: int) -> None:
    """Write for each row whether it has a move, is not in check, and no capture or promotion wins material."""
    sets = carray(room_for_sets(), MOST_WORDS)
    for row in range(len(states)):
        p = load(states, row)
        stop, check = generate(p, sets)
        calm = stop > 0 and not check
        if calm:
            for index in range(list_moves(sets, stop, moves, 0)):
                move = np.int64(moves[index])
                if gain_of(p, move) > 0 and wins_at_least(p, move, wins_cp):
                    calm = False
                    break
        quiet[row] = calm


def quiet_mask(boards_N13: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool[N]: neither checkmate nor stalemate, not in check, and no capture or promotion wins material."""
    quiet_N = np.zeros(len(boards_N13), np.bool_)
    find_quiet(np.ascontiguousarray(boards_N13), quiet_N, np.empty(MAX_MOVES, np.uint16), WINS_CP)
    return quiet_N
