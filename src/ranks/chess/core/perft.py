"""Perft: the number of sequences of `depth` legal moves, the usual test of a move generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numba import types
from numpy.typing import NDArray

from ranks.chess.core.moves import MAX_MOVES, Moves
from ranks.chess.core.rules import CHECK, LEGAL, legal, play
from ranks.chess.core.tables import Words
from ranks.chess.core.words import WORDS
from ranks.jit import kernel
from ranks.search.game import MOVES, PLAY_TYPE, STATES

Counts = NDArray[np.int64]
COUNTS = types.Array(types.int64, 1, "C")


def perft(start: Words, depth: int) -> int:
    """The number of sequences of `depth` legal moves from row 0. The last move of each is counted
    without being made."""
    if depth == 0:
        return 1
    rows = np.empty((depth, WORDS), np.uint64)
    rows[0] = start[0]
    return _perft(rows, np.empty(depth * MAX_MOVES, np.uint16), np.zeros(depth, np.int64), legal, play)


def divide(start: Words, depth: int) -> Iterator[tuple[int, int]]:
    """Each legal move of row 0, in the order of generation, with its perft of depth - 1."""
    moves = np.empty(MAX_MOVES, np.uint16)
    num_moves = legal(start, 0, moves, 0) % CHECK
    after = np.empty((1, WORDS), np.uint64)
    for move in moves[:num_moves]:
        play(start, 0, after, 0, move)
        yield int(move), perft(after, depth - 1)


@kernel(types.int64(STATES, MOVES, COUNTS, types.FunctionType(LEGAL), PLAY_TYPE))
def _perft(rows: Words, moves: Moves, left: Counts, legal: Callable[..., int], play: Callable[..., None]) -> int:
    """Depth-first search without recursion.

    Level k uses rows[k], moves[218 * k:] and left[k], the moves still to try."""
    depth = len(left)
    total, level, arrived = 0, 0, True
    while level >= 0:
        if arrived:
            left[level] = legal(rows, level, moves, level * MAX_MOVES) % CHECK
        if level == depth - 1:
            total += left[level]
            left[level] = 0
        if left[level] == 0:
            level, arrived = level - 1, False
            continue
        left[level] -= 1
        play(rows, level, rows, level + 1, moves[level * MAX_MOVES + left[level]])
        level, arrived = level + 1, True
    return total
