"""Who attacks what: sliders by obstruction difference, whole sides by parallel-prefix fills.

Obstruction difference: on one line through a square, with the occupied squares below it and above it apart, one
subtraction clears everything from the nearest blocker above to the nearest below (chessprogramming.org, "Obstruction
Difference"). Fills: "Kogge-Stone Algorithm", ibid. Neither has a branch nor a large table.
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
def along(line: int, square: Word, occupied: Word) -> Word:
    """What a slider on a square attacks along one of LINES, the first blockers included."""
    below, above = BELOW[line, square], ABOVE[line, square]
    upper = above & occupied
    from_below = ALL << (np.uint64(63) - leading_zeros((below & occupied) | ONE))
    to_above = (upper & (ZERO - upper)) << ONE
    return (from_below + to_above) & (below | above)


@helper
def diagonal(square: Word, occupied: Word) -> Word:
    """What a bishop attacks."""
    return along(0, square, occupied) | along(1, square, occupied)


@helper
def straight(square: Word, occupied: Word) -> Word:
    """What a rook attacks."""
    return along(2, square, occupied) | along(3, square, occupied)


@helper
def fill_up(pieces: Word, empty: Word, step: Word, board: Word) -> Word:
    """What sliders attack in a direction of rising squares; `board` cuts off what would wrap round an edge."""
    empty &= board
    pieces |= empty & (pieces << step)
    empty &= empty << step
    pieces |= empty & (pieces << (step * TWO))
    empty &= empty << (step * TWO)
    pieces |= empty & (pieces << (step * np.uint64(4)))
    return (pieces << step) & board


@helper
def fill_down(pieces: Word, empty: Word, step: Word, board: Word) -> Word:
    """What sliders attack in a direction of falling squares."""
    empty &= board
    pieces |= empty & (pieces >> step)
    empty &= empty >> step
    pieces |= empty & (pieces >> (step * TWO))
    empty &= empty >> (step * TWO)
    pieces |= empty & (pieces >> (step * np.uint64(4)))
    return (pieces >> step) & board


@helper
def attacked_by_sliders(diagonals: Word, straights: Word, occupied: Word) -> Word:
    """Every square that a set of diagonal and a set of straight sliders attack."""
    empty = ~occupied
    rising = fill_up(diagonals, empty, np.uint64(9), NOT_A) | fill_up(diagonals, empty, np.uint64(7), NOT_H)
    rising |= fill_up(straights, empty, np.uint64(8), EVERYWHERE) | fill_up(straights, empty, ONE, NOT_A)
    falling = fill_down(diagonals, empty, np.uint64(9), NOT_H) | fill_down(diagonals, empty, np.uint64(7), NOT_A)
    falling |= fill_down(straights, empty, np.uint64(8), EVERYWHERE) | fill_down(straights, empty, ONE, NOT_H)
    return rising | falling


@helper
def attacked_by_knights(knights: Word) -> Word:
    """Every square that a set of knights attacks."""
    near = ((knights << ONE) & NOT_A) | ((knights >> ONE) & NOT_H)
    far = ((knights << TWO) & NOT_AB) | ((knights >> TWO) & NOT_GH)
    return (near << np.uint64(16)) | (near >> np.uint64(16)) | (far << np.uint64(8)) | (far >> np.uint64(8))


@helper
def attacked_by_pawns(pawns: Word, side: Word) -> Word:
    """Every square that a set of pawns of one side attacks."""
    if side == ZERO:
        return ((pawns & NOT_A) << np.uint64(7)) | ((pawns & NOT_H) << np.uint64(9))
    return ((pawns & NOT_A) >> np.uint64(9)) | ((pawns & NOT_H) >> np.uint64(7))
