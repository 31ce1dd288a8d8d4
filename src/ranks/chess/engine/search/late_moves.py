"""Late moves that the search leaves out or searches less deeply: late move, futility, history and exchange pruning, and
reductions."""

from __future__ import annotations

import numpy as np

from ranks.chess.core.alphabeta_state import Number
from ranks.chess.core.bits import ZERO, bit
from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.position import Position, kind_at
from ranks.chess.engine.search.exchange import wins_at_least
from ranks.chess.engine.search.nodes import checks_of, is_improving
from ranks.chess.engine.search.ordering import BAD_CAPTURE, COUNTER, quiet_history
from ranks.chess.engine.search.pruning import (
    EXCHANGE_CAPTURE_CP,
    EXCHANGE_DEPTH,
    EXCHANGE_QUIET_CP,
    FUTILE_MOVE_CP,
    FUTILE_MOVE_CP_PER_PLY,
    FUTILE_MOVE_DEPTH,
    HISTORY_DEPTH,
    HISTORY_PER_PLY,
    HISTORY_PER_REDUCTION,
    LATE_MOVES,
    REDUCTIONS,
)
from ranks.chess.engine.search.state import EngineState
from ranks.jit import inlined

PAWN_KIND = np.uint64(1)


@inlined
def drop_quiet_moves(s: EngineState, level: int) -> None:
    """Keep only the losing captures of the untried moves."""
    f = s.frames[level]
    at = level * MAX_MOVES
    kept = at + f.num_tried
    for index in range(kept, at + f.num_moves):
        if s.order[index] <= BAD_CAPTURE // 2:
            s.moves[kept], s.order[kept] = s.moves[index], s.order[index]
            kept += 1
    f.num_moves = kept - at


@inlined
def is_hopeless(s: EngineState, p: Position, level: int, move: Number, order: Number, gain: Number) -> bool:
    """Whether a move is left out: it comes late, or can hardly raise alpha, or loses material."""
    f = s.frames[level]
    if gain == 0 and is_far_pawn_push(p, move):
        return False
    kind = np.int64(kind_at(p, np.uint64(move & 63)))
    discovers = f.discoverers & bit(np.uint64(move & 63)) != ZERO
    gives_check = discovers or checks_of(s, level, kind) & bit(np.uint64(move >> 6 & 63)) != ZERO
    depth, threshold_cp = f.depth, -EXCHANGE_CAPTURE_CP * f.depth
    if gain == 0 and not gives_check:
        if f.num_quiets >= (LATE_MOVES + f.depth * f.depth) // (2 - is_improving(s, level)):
            drop_quiet_moves(s, level)
            return True
        depth = max(f.depth - 1 - REDUCTIONS[min(f.depth, 63), min(f.num_searched, 63)], 0)
        most_cp = f.static_eval + FUTILE_MOVE_CP + FUTILE_MOVE_CP_PER_PLY * depth
        if f.in_check == 0 and depth <= FUTILE_MOVE_DEPTH and most_cp <= f.alpha:
            return True
        if depth <= HISTORY_DEPTH and order < -HISTORY_PER_PLY * f.depth:
            return True
        threshold_cp = -EXCHANGE_QUIET_CP * depth * depth
    elif gain > 0 and order > BAD_CAPTURE // 2:
        return False
    if gives_check:
        threshold_cp *= 2
    return depth <= EXCHANGE_DEPTH and not wins_at_least(p, move, threshold_cp)


@inlined
def is_far_pawn_push(p: Position, move: Number) -> bool:
    """Whether a move brings a pawn to the sixth rank or beyond, seen from its side."""
    rank = (move >> 9 & 7) ^ (7 * np.int64(p.side))
    return rank >= 5 and kind_at(p, np.uint64(move & 63)) == PAWN_KIND


@inlined
def reduction_of(s: EngineState, p: Position, level: int, move: Number, order: Number, gain: Number) -> Number:
    """By how many plies the search of a late move is reduced."""
    f = s.frames[level]
    if f.depth < 3 or (gain > 0 and order > 0) or (gain == 0 and is_far_pawn_push(p, move)):
        return 0
    is_pv = 1 if f.beta - f.alpha > 1 else 0
    reduction = REDUCTIONS[min(f.depth, 63), min(f.num_searched, 63)] - is_pv + f.cut_node
    reduction += 1 - is_improving(s, level) - s.frames[level + 1].in_check
    if order >= COUNTER:
        reduction -= 1
    elif gain == 0:
        reduction -= quiet_history(s, p, level, move) // HISTORY_PER_REDUCTION
    if s.frames[level + 1].in_check:
        reduction = min(reduction, 1)
    return min(max(reduction, 0), max(f.new_depth - 1, 0))
