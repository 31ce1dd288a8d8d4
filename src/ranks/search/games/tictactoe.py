"""Tic-tac-toe.

0 1 2      A state is two words: the squares of the side to move, and those of the other side.
3 4 5      A move is the square; moves are given in order of the squares.
6 7 8
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranks.jit import helper, kernel
from ranks.search.game import DRAWN, LEGAL_MOVES, LOST, PLAY, Game

LINES = np.array([sum(1 << square for square in line) for line in (
    (0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)
)], np.uint64)  # fmt: skip
FULL = np.uint64(0b111111111)
ONE = np.uint64(1)


@helper
def has_line(squares: np.uint64) -> bool:
    """Whether these squares contain a line of three."""
    for line in LINES:  # noqa: SIM110 - no generators in kernels
        if squares & line == line:
            return True
    return False


@kernel(PLAY)
def play(from_states: Any, from_row: int, to_states: Any, to_row: int, move: np.uint16) -> None:
    """`Game.play`."""
    mine, theirs = from_states[from_row, 0], from_states[from_row, 1]
    to_states[to_row, 0] = theirs
    to_states[to_row, 1] = mine | (ONE << np.uint64(move))


@kernel(LEGAL_MOVES)
def legal_moves(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    """`Game.legal_moves`."""
    mine, theirs = states[row, 0], states[row, 1]
    if has_line(theirs):
        return LOST
    taken = mine | theirs
    if taken == FULL:
        return DRAWN
    count = 0
    for square in range(9):
        if taken >> np.uint64(square) & ONE == np.uint64(0):
            moves[at + count] = square
            count += 1
    return count


TICTACTOE = Game(
    "tic-tac-toe", np.zeros(2, np.uint64), max_moves=9, key_word=0, history=0, play=play, legal_moves=legal_moves
)
