"""Connect Four: seven columns of six, four in a line win.

5  12 19 26 33 40 47      Bit 7 * column + row, with an empty row on top of each column, so that shifts by
4  11 18 25 32 39 46      1 (up), 7 (along a row), 8 and 6 (along the diagonals) never wrap into a line.
3  10 17 24 31 38 45
2  9  16 23 30 37 44      A state is two words: the stones of the side to move, and those of the other side.
1  8  15 22 29 36 43      A move is the column; moves are given from the left.
0  7  14 21 28 35 42
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranks.jit import helper, kernel
from ranks.search.game import DRAWN, LEGAL_MOVES, LOST, PLAY, Game

COLUMN = np.uint64(0b111111)
BOTTOM = np.uint64(sum(1 << 7 * column for column in range(7)))
FULL = COLUMN * BOTTOM
EMPTY = np.uint64(0)
SEVEN = np.uint64(7)


@helper
def has_four(stones: np.uint64) -> bool:
    """Whether four of these stones are in a line."""
    for shift in (np.uint64(1), np.uint64(6), np.uint64(7), np.uint64(8)):
        pairs = stones & (stones >> shift)
        if pairs & (pairs >> (shift + shift)) != EMPTY:
            return True
    return False


@helper
def landing(taken: np.uint64, column: np.uint64) -> np.uint64:
    """The square that the next stone in this column takes, as a bit; EMPTY if the column is full."""
    return (taken + (BOTTOM & (COLUMN << SEVEN * column))) & (COLUMN << SEVEN * column)


@kernel(PLAY)
def play(from_states: Any, from_row: int, to_states: Any, to_row: int, move: np.uint16) -> None:
    """`Game.play`."""
    mine, theirs = from_states[from_row, 0], from_states[from_row, 1]
    to_states[to_row, 0] = theirs
    to_states[to_row, 1] = mine | landing(mine | theirs, np.uint64(move))


@kernel(LEGAL_MOVES)
def legal_moves(states: Any, row: int, keys: Any, first: int, end: int, moves: Any, at: int) -> int:
    """`Game.legal_moves`."""
    mine, theirs = states[row, 0], states[row, 1]
    if has_four(theirs):
        return LOST
    taken = mine | theirs
    if taken == FULL:
        return DRAWN
    count = 0
    for column in range(7):
        if landing(taken, np.uint64(column)) != EMPTY:
            moves[at + count] = column
            count += 1
    return count


CONNECT_FOUR = Game(
    "Connect Four", np.zeros(2, np.uint64), max_moves=7, key_word=0, history=0, play=play, legal_moves=legal_moves
)
