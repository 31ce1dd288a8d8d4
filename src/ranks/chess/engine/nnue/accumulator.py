"""The accumulators of the net: one for each side, updated from the parent position with each move.

A move changes at most four squares. The accumulator of a side is its parent's, minus the weights of the features that
left, plus those of the features that came. When the king of a side enters another bucket or crosses to the other half
of the board, all features of its view change, and its accumulator is computed from scratch (refreshed).

Legend: L levels of a search, H accumulator width, F features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranks.chess.core.alphabeta_state import Number
from ranks.chess.core.bits import ONE, ZERO, Word, clear_lsb, lsb
from ranks.chess.core.position import Position, kind_at
from ranks.chess.engine.nnue.features import feature, first_feature, king_of, orientation
from ranks.jit import helper

Accumulators = NDArray[np.int16]
"""int16[L, 2, H]: at each level white's, then black's."""


@helper
def view_feature(p: Position, square: Word, perspective: Number, first: Number, orient: Number) -> Number:
    """The feature of the piece on a square of a position, or -1 where there is none."""
    kind = np.int64(kind_at(p, square))
    if kind == 0:
        return -1
    of_other = np.int64((p.black >> square) & ONE) ^ perspective
    return feature(first, orient, of_other * 6 + kind - 1, square)


@helper
def refresh(
    weights_FH: NDArray[np.int16],
    bias_H: NDArray[np.int16],
    p: Position,
    perspective: Number,
    sums: Accumulators,
    level: int,
) -> None:
    """Compute the accumulator of one side at a level from scratch."""
    king = king_of(p, perspective)
    orient = orientation(king, perspective)
    first = first_feature(king, orient)
    for h in range(len(bias_H)):
        sums[level, perspective, h] = bias_H[h]
    pieces = p.white | p.black
    while pieces != ZERO:
        row = view_feature(p, lsb(pieces), perspective, first, orient)
        for h in range(len(bias_H)):
            sums[level, perspective, h] += weights_FH[row, h]
        pieces = clear_lsb(pieces)


@helper
def same_view(before: Position, after: Position, perspective: Number) -> bool:
    """Whether the king of a side has the same bucket and half of the board before and after a move."""
    old, new = king_of(before, perspective), king_of(after, perspective)
    old_orient, new_orient = orientation(old, perspective), orientation(new, perspective)
    return old_orient == new_orient and first_feature(old, old_orient) == first_feature(new, new_orient)


@helper
def update(
    weights_FH: NDArray[np.int16],
    bias_H: NDArray[np.int16],
    before: Position,
    after: Position,
    perspective: Number,
    sums: Accumulators,
    level: int,
) -> None:
    """Compute the accumulator of one side at a level from that of the level above, the position before the move."""
    if not same_view(before, after, perspective):
        refresh(weights_FH, bias_H, after, perspective, sums, level)
        return
    king = king_of(after, perspective)
    orient = orientation(king, perspective)
    first = first_feature(king, orient)
    # at most two features leave and two come: a capture takes two away, castling moves two pieces
    left_1, left_2, came_1, came_2 = -1, -1, -1, -1
    changed = (before.white ^ after.white) | (before.black ^ after.black)
    while changed != ZERO:
        square = lsb(changed)
        row = view_feature(before, square, perspective, first, orient)
        if row >= 0:
            left_1, left_2 = row, left_1
        row = view_feature(after, square, perspective, first, orient)
        if row >= 0:
            came_1, came_2 = row, came_1
        changed = clear_lsb(changed)
    above = level - 1
    if left_1 < 0:  # a null move
        for h in range(len(bias_H)):
            sums[level, perspective, h] = sums[above, perspective, h]
    elif left_2 < 0:
        for h in range(len(bias_H)):
            came = weights_FH[came_1, h]
            sums[level, perspective, h] = sums[above, perspective, h] - weights_FH[left_1, h] + came
    elif came_2 < 0:
        for h in range(len(bias_H)):
            left = weights_FH[left_1, h] + weights_FH[left_2, h]
            sums[level, perspective, h] = sums[above, perspective, h] - left + weights_FH[came_1, h]
    else:
        for h in range(len(bias_H)):
            left = weights_FH[left_1, h] + weights_FH[left_2, h]
            came = weights_FH[came_1, h] + weights_FH[came_2, h]
            sums[level, perspective, h] = sums[above, perspective, h] - left + came
