"""Constant tables: attacks on an empty board, squares between two squares, Zobrist keys.

Plain loops over files and ranks fill them when the module is imported (about 20 ms).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

KNIGHT_STEPS = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))
KING_STEPS = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
LINES = ((1, 1), (-1, 1), (1, 0), (0, 1))
"""Directions towards higher squares: the two diagonals, the rank, the file."""


def squares_of(steps: tuple[tuple[int, int], ...], reach: int) -> Words:
    """uint64[64]: for each square the bitboard of the squares at 1 to `reach` times each step."""
    table = np.zeros(64, np.uint64)
    for square in range(64):
        reached = 0
        for file_step, rank_step in steps:
            for distance in range(1, reach + 1):
                file, rank = square % 8 + distance * file_step, square // 8 + distance * rank_step
                if 0 <= file < 8 and 0 <= rank < 8:
                    reached |= 1 << (8 * rank + file)
        table[square] = reached
    return table


def half_lines(sign: int) -> Words:
    """uint64[4, 64]: line_attacks each of LINES, all squares above (+1) or below (-1) a square."""
    above = np.stack([squares_of(((sign * file, sign * rank),), 7) for file, rank in LINES])
    return np.ascontiguousarray(above)


def between_and_through() -> tuple[Words, Words]:
    """Two uint64[64, 64]: the squares between two squares of one line, and the whole line; else
    0."""
    between, through = np.zeros((64, 64), np.uint64), np.zeros((64, 64), np.uint64)
    for line in range(4):
        for a in range(64):
            for b in range(a + 1, 64):
                if int(ABOVE[line, a]) >> b & 1:
                    between[a, b] = between[b, a] = ABOVE[line, a] & BELOW[line, b]
                    whole = ABOVE[line, a] | BELOW[line, a] | np.uint64(1 << a)
                    through[a, b] = through[b, a] = whole
    return between, through


def castling_kept() -> Words:
    """uint64[64]: a mask of the castling rights that survive a move from or to a square."""
    kept = np.full(64, 0xFFFFFFFFFFFFFFFF, np.uint64)
    for king, rooks in ((4, (0, 7)), (60, (56, 63))):
        for rook in rooks:
            kept[rook] ^= np.uint64(1 << rook)
            kept[king] ^= np.uint64(1 << rook)
    return kept


def zobrist_keys() -> Words:
    """uint64[904] random bits: [2 sides, 7 kinds, 64 squares], kind 0 all zero; 8 en passant files.

    A castling right uses the key of a white pawn on the rook's square, where no pawn can be."""
    keys = np.random.Generator(np.random.PCG64(20261120)).integers(0, 1 << 64, 904, np.uint64)
    keys[0:64] = 0
    keys[448:512] = 0
    return keys


KNIGHT: Words = squares_of(KNIGHT_STEPS, 1)
KING = squares_of(KING_STEPS, 1)
PAWN = np.concatenate([squares_of(((-1, 1), (1, 1)), 1), squares_of(((-1, -1), (1, -1)), 1)])
"""uint64[128]: the attacks of a white pawn from each square, then those of a black pawn."""
DIAGONALS = squares_of(((1, 1), (-1, 1), (-1, -1), (1, -1)), 7)
STRAIGHTS = squares_of(((1, 0), (0, 1), (-1, 0), (0, -1)), 7)
ABOVE, BELOW = half_lines(1), half_lines(-1)
BETWEEN, THROUGH = between_and_through()
CASTLING_KEPT = castling_kept()
KEYS = zobrist_keys()
EN_PASSANT_KEYS = 896
"""The index in KEYS of the first of the eight en passant keys."""
SIDE_KEY = np.uint64(0xF8D626AAAF278509)
"""The key of the side to move: XORed in when it is black's turn."""
