"""Attacks: of one slider by obstruction difference, of all pieces of a side by Kogge-Stone fills.

Obstruction difference works on one line through a square. It separates the occupied squares below
the square from those above it; one subtraction then gives all squares from the nearest blocker
below to the nearest blocker above. See chessprogramming.org, "Obstruction Difference" and
"Kogge-Stone Algorithm". Both need no branches and no large tables.
"""

from __future__ import annotations

import numpy as np

from ranks.chess.core.bits import ALL, FILE_A, FILE_H, ONE, TWO, ZERO, Word, leading_zeros
from ranks.chess.core.tables import ABOVE, BELOW
from ranks.jit import helper

EVERYWHERE, NOT_A, NOT_H = ALL, ~FILE_A, ~FILE_H
NOT_AB = np.uint64(0xFCFCFCFCFCFCFCFC)
NOT_GH = np.uint64(0x3F3F3F3F3F3F3F3F)


@helper
def line_attacks(line: int, square: Word, occupied: Word) -> Word:
    """The squares that a slider attacks along one of LINES, including the first blockers."""
    below, above = BELOW[line, square], ABOVE[line, square]
    upper = above & occupied
    from_below = ALL << (np.uint64(63) - leading_zeros((below & occupied) | ONE))
    to_above = (upper & (ZERO - upper)) << ONE
    return (from_below + to_above) & (below | above)


@helper
def bishop_attacks(square: Word, occupied: Word) -> Word:
    """The squares that a bishop attacks."""
    return line_attacks(0, square, occupied) | line_attacks(1, square, occupied)


@helper
def rook_attacks(square: Word, occupied: Word) -> Word:
    """The squares that a rook attacks."""
    return line_attacks(2, square, occupied) | line_attacks(3, square, occupied)


@helper
def fill_up(pieces: Word, empty: Word, step: Word, board: Word) -> Word:
    """Attacks of sliders in one direction of rising squares; `board` masks what would wrap
    around."""
    empty &= board
    pieces |= empty & (pieces << step)
    empty &= empty << step
    pieces |= empty & (pieces << (step * TWO))
    empty &= empty << (step * TWO)
    pieces |= empty & (pieces << (step * np.uint64(4)))
    return (pieces << step) & board


@helper
def fill_down(pieces: Word, empty: Word, step: Word, board: Word) -> Word:
    """Attacks of sliders in one direction of falling squares; `board` as in `fill_up`."""
    empty &= board
    pieces |= empty & (pieces >> step)
    empty &= empty >> step
    pieces |= empty & (pieces >> (step * TWO))
    empty &= empty >> (step * TWO)
    pieces |= empty & (pieces >> (step * np.uint64(4)))
    return (pieces >> step) & board


@helper
def slider_attacks(diagonals: Word, straights: Word, occupied: Word) -> Word:
    """Attacks of bishops and queens (`diagonals`) and of rooks and queens (`straights`)."""
    empty = ~occupied
    rising = fill_up(diagonals, empty, np.uint64(9), NOT_A) | fill_up(diagonals, empty, np.uint64(7), NOT_H)
    rising |= fill_up(straights, empty, np.uint64(8), EVERYWHERE) | fill_up(straights, empty, ONE, NOT_A)
    falling = fill_down(diagonals, empty, np.uint64(9), NOT_H) | fill_down(diagonals, empty, np.uint64(7), NOT_A)
    falling |= fill_down(straights, empty, np.uint64(8), EVERYWHERE) | fill_down(straights, empty, ONE, NOT_H)
    return rising | falling


@helper
def knight_attacks(knights: Word) -> Word:
    """All squares that a set of knights attacks."""
    near = ((knights << ONE) & NOT_A) | ((knights >> ONE) & NOT_H)
    far = ((knights << TWO) & NOT_AB) | ((knights >> TWO) & NOT_GH)
    return (near << np.uint64(16)) | (near >> np.uint64(16)) | (far << np.uint64(8)) | (far >> np.uint64(8))


@helper
def pawn_attacks(pawns: Word, side: Word) -> Word:
    """All squares that the pawns of one side attack."""
    if side == ZERO:
        return ((pawns & NOT_A) << np.uint64(7)) | ((pawns & NOT_H) << np.uint64(9))
    return ((pawns & NOT_A) >> np.uint64(9)) | ((pawns & NOT_H) >> np.uint64(7))
