"""Static evaluation in centipawns: material, and optionally piece-square tables.

The numbers are those of Michniewski's Simplified Evaluation Function (chessprogramming.org, 1995).
Legend: B positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranks.chess.core.bits import ONE, ZERO, Word, clear_lsb, lsb, popcount
from ranks.chess.core.position import Position, load
from ranks.chess.core.tables import Words
from ranks.jit import helper, kernel

PAWN_CP, KNIGHT_CP, BISHOP_CP, ROOK_CP, QUEEN_CP = 100, 320, 330, 500, 900
CP_PER_DECADE = 400.0
"""An advantage of this many centipawns is an expected score of 10/11: odds of ten to one."""
_SQUARES = """
  0   0   0   0   0   0   0   0    50  50  50  50  50  50  50  50    10  10  20  30  30  20  10  10
  5   5  10  25  25  10   5   5     0   0   0  20  20   0   0   0     5  -5 -10   0   0 -10  -5   5
  5  10  10 -20 -20  10  10   5     0   0   0   0   0   0   0   0

-50 -40 -30 -30 -30 -30 -40 -50   -40 -20   0   0   0   0 -20 -40   -30   0  10  15  15  10   0 -30
-30   5  15  20  20  15   5 -30   -30   0  15  20  20  15   0 -30   -30   5  10  15  15  10   5 -30
-40 -20   0   5   5   0 -20 -40   -50 -40 -30 -30 -30 -30 -40 -50

-20 -10 -10 -10 -10 -10 -10 -20   -10   0   0   0   0   0   0 -10   -10   0   5  10  10   5   0 -10
-10   5   5  10  10   5   5 -10   -10   0  10  10  10  10   0 -10   -10  10  10  10  10  10  10 -10
-10   5   0   0   0   0   5 -10   -20 -10 -10 -10 -10 -10 -10 -20

  0   0   0   0   0   0   0   0     5  10  10  10  10  10  10   5    -5   0   0   0   0   0   0  -5
 -5   0   0   0   0   0   0  -5    -5   0   0   0   0   0   0  -5    -5   0   0   0   0   0   0  -5
 -5   0   0   0   0   0   0  -5     0   0   0   5   5   0   0   0

-20 -10 -10  -5  -5 -10 -10 -20   -10   0   0   0   0   0   0 -10   -10   0   5   5   5   5   0 -10
 -5   0   5   5   5   5   0  -5     0   0   5   5   5   5   0  -5   -10   5   5   5   5   5   0 -10
-10   0   5   0   0   0   0 -10   -20 -10 -10  -5  -5 -10 -10 -20

-30 -40 -40 -50 -50 -40 -40 -30   -30 -40 -40 -50 -50 -40 -40 -30   -30 -40 -40 -50 -50 -40 -40 -30
-30 -40 -40 -50 -50 -40 -40 -30   -20 -30 -30 -40 -40 -30 -30 -20   -10 -20 -20 -20 -20 -20 -20 -10
 20  20   0   0   0   0  20  20    20  30  10   0   0  10  30  20

-50 -40 -30 -20 -20 -30 -40 -50   -30 -20 -10   0   0 -10 -20 -30   -30 -10  20  30  30  20 -10 -30
-30 -10  30  40  40  30 -10 -30   -30 -10  30  40  40  30 -10 -30   -30 -10  20  30  30  20 -10 -30
-30 -30   0   0   0   0 -30 -30   -50 -30 -30 -30 -30 -30 -30 -50
"""
BONUS_CP = np.array(_SQUARES.split(), np.int64).reshape(7, 64)
"""int64[7, 64]: piece-square tables of pawn, knight, bishop, rook, queen, king, and king in the
endgame, from a8 to h1.

A white piece on `square` has the entry square ^ 56, a black piece the entry square."""
VALUE_CP = np.array([PAWN_CP, KNIGHT_CP, BISHOP_CP, ROOK_CP, QUEEN_CP, 0], np.int64)


@helper
def side_material(p: Position, side: Word) -> Any:
    """The material of one side (a bitboard) in centipawns."""
    return (
        PAWN_CP * np.int64(popcount(p.pawns & side))
        + KNIGHT_CP * np.int64(popcount(p.knights & side))
        + BISHOP_CP * np.int64(popcount(p.bishops & side))
        + ROOK_CP * np.int64(popcount(p.rooks & side))
        + QUEEN_CP * np.int64(popcount(p.queens & side))
    )


@helper
def has_endgame_material(p: Position, side: Word) -> bool:
    """Whether a side has no queen, or a queen and at most one minor piece (Michniewski's
    endgame)."""
    minors = popcount((p.knights | p.bishops) & side)
    return p.queens & side == ZERO or (p.rooks & side == ZERO and minors <= ONE)


@helper
def bonus(pieces: Word, kind: int, flip: Word) -> int:
    """The sum of BONUS_CP over pieces of one kind and side; `flip`: 56 for white, 0 for black."""
    total = 0
    while pieces != ZERO:
        total += BONUS_CP[kind, lsb(pieces) ^ flip]
        pieces = clear_lsb(pieces)
    return total


@helper
def side_bonus(p: Position, side: Word, flip: Word, king: int) -> int:
    """The piece-square bonus of one side; king: the row of BONUS_CP for its king."""
    return (
        bonus(p.pawns & side, 0, flip)
        + bonus(p.knights & side, 1, flip)
        + bonus(p.bishops & side, 2, flip)
        + bonus(p.rooks & side, 3, flip)
        + bonus(p.queens & side, 4, flip)
        + bonus(p.kings & side, king, flip)
    )


@helper
def evaluate(p: Position, positional: bool) -> int:
    """Centipawns for the side to move: material, and piece-square tables if `positional`."""
    score = side_material(p, p.white) - side_material(p, p.black)
    if positional:
        king = 6 if has_endgame_material(p, p.white) and has_endgame_material(p, p.black) else 5
        score += side_bonus(p, p.white, np.uint64(56), king) - side_bonus(p, p.black, ZERO, king)
    return score if p.side == ZERO else -score


@kernel("void(uint64[:, ::1], int64, int64[::1])")
def evaluations(states: Words, positional: int, scores_cp: NDArray[np.int64]) -> None:
    """Write the evaluation of each of B positions into scores_cp."""
    for row in range(len(scores_cp)):
        scores_cp[row] = evaluate(load(states, row), positional != 0)


@kernel("void(uint64[:, ::1], int32[::1], float32[::1])")
def expected_outcomes(states: Words, num_moves: NDArray[np.int32], values: NDArray[np.float32]) -> None:
    """Write the outcome, -1 to 1, that material predicts for each of B positions that has moves."""
    for row in range(len(values)):
        if num_moves[row] > 0:
            score_cp = evaluate(load(states, row), False)
            values[row] = 2.0 / (1.0 + 10.0 ** (-score_cp / CP_PER_DECADE)) - 1.0
