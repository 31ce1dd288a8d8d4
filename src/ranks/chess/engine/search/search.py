"""The search: principal variation search over a stack of frames.

Alpha-beta with a window of width one for all moves but the first (Marsland & Campbell 1982), a quiescence search of
captures that do not lose material, check extensions, and the usual pruning of what hardly matters. The search is a
loop over levels instead of a recursion, so it can stop after any number of nodes and go on later. A level goes
through these stages:

    ENTER ──► NULL_MOVE ──► EXPAND ──► MOVES ◄──┐ SINGULAR, or the score
      │           │           │          │      │ of a child comes back
      ▼           ▼           ▼          ▼      │
     draw,    the opponent  mate      all moves searched, or a beta cutoff: the score goes to the parent,
     table,   passes: is    or        which may search the same child again, deeper or with a wider window
     pruned   it enough?    draw

`control.sound` turns off everything that can change the score: then it is the score of plain minimax with the same
extensions and the same quiescence search. Off are: cutoffs by the table, the null move, futility, delta,
late move and exchange pruning, reductions, and singular extensions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from ranks.chess.core.alphabeta_state import MATE_FLOOR, UNKNOWN, UPPER_BOUND, Number
from ranks.chess.core.bits import ONE, ZERO, lsb
from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.position import HALF_MOVES, Position, load, make, store
from ranks.chess.core.tables import EN_PASSANT_KEYS, KEYS, SIDE_KEY
from ranks.chess.engine.evaluation import prepare_child
from ranks.chess.engine.search.exchange import gain_of
from ranks.chess.engine.search.late_moves import is_hopeless, reduction_of
from ranks.chess.engine.search.nodes import (
    enter,
    enter_root,
    expand,
    finish,
    in_check,
)
from ranks.chess.engine.search.ordering import (
    BAD_CAPTURE,
    SKIPPED,
    learn_cutoff,
    moved_index,
    pick_move,
)
from ranks.chess.engine.search.pruning import (
    DELTA_CP,
    NULL_REDUCTION,
    PLIES_PER_NULL_REDUCTION,
    SINGULAR_CP_PER_PLY,
    SINGULAR_DEPTH,
)
from ranks.chess.engine.search.state import (
    ENGINE_STATE,
    ENTER,
    EXPAND,
    MOVES,
    NULL_MOVE,
    PIECE_SQUARES,
    ROOT,
    SINGULAR,
    EngineState,
)
from ranks.jit import inlined, kernel


@inlined
def null_move(p: Position) -> Position:
    """The position after passing. Its clock is 0: no position before can be repeated."""
    key = p.key ^ SIDE_KEY
    if p.en_passant != ZERO:
        key ^= KEYS[np.uint64(EN_PASSANT_KEYS) + (lsb(p.en_passant) & np.uint64(7))]
    return Position(
        p.pawns,
        p.knights,
        p.bishops,
        p.rooks,
        p.queens,
        p.kings,
        p.white,
        p.black,
        p.side ^ ONE,
        p.castling,
        ZERO,
        p.clocks & ~HALF_MOVES,
        key,
    )


@inlined
def search_child(s: EngineState, level: int, alpha: Number, beta: Number, depth: Number, cut_node: Number) -> None:
    """Set up the search of the child, whose position is in its row already."""
    child = s.frames[level + 1]
    child.alpha, child.beta, child.depth, child.cut_node = alpha, beta, depth, cut_node
    child.stage, child.excluded = ENTER, 0


@inlined
def begin_null_move(s: EngineState, level: int) -> None:
    """Let the opponent move twice: what is still above beta then will be so after a good move."""
    f = s.frames[level]
    store(s.rows, level + 1, null_move(load(s.rows, level)))
    s.frames[level + 1].in_check = 0
    f.moved = PIECE_SQUARES
    reduction = NULL_REDUCTION + f.depth // PLIES_PER_NULL_REDUCTION
    search_child(s, level, -f.beta, 1 - f.beta, f.depth - 1 - reduction, 1 - f.cut_node)


@inlined
def is_singular_candidate(s: EngineState, level: int, move: Number) -> bool:
    """Whether to test that a hash move is much better than all others."""
    f = s.frames[level]
    return (
        level > 0
        and f.depth >= SINGULAR_DEPTH
        and move == f.hash_move
        and f.excluded == 0
        and f.singular_tested == 0
        and f.hash_bound != UPPER_BOUND
        and f.hash_depth >= f.depth - 3
        and abs(f.hash_score) < MATE_FLOOR
        and level < 2 * s.control[0].root_depth
    )


@inlined
def begin_singular(s: EngineState, level: int, move: Number) -> None:
    """Search the same position without its hash move, to half the depth."""
    f = s.frames[level]
    store(s.rows, level + 1, load(s.rows, level))
    s.frames[level + 1].in_check = f.in_check
    f.moved = s.frames[level - 1].moved
    f.stage, f.singular_tested = SINGULAR, 1
    bound = f.hash_score - SINGULAR_CP_PER_PLY * f.depth
    search_child(s, level, bound - 1, bound, (f.depth - 1) // 2, f.cut_node)
    s.frames[level + 1].excluded = move


@inlined
def next_move(s: EngineState, level: int) -> bool:
    """Make the next move that is worth it and set up the search of the child. False if there is none left."""
    f = s.frames[level]
    p = load(s.rows, level)
    is_sound = s.control[0].sound != 0
    quiesces = f.depth <= 0 and f.in_check == 0
    while f.num_tried < f.num_moves:
        index = pick_move(s, p, level)
        move, order = np.int64(s.moves[index]), s.order[index]
        if move == f.excluded:
            s.order[index] = SKIPPED
            continue
        gain = gain_of(p, move)
        if quiesces:
            if order <= BAD_CAPTURE // 2:
                return False
            if not is_sound and f.best > -MATE_FLOOR and f.static_eval + gain + DELTA_CP <= f.alpha:
                continue
        elif level > 0 and not is_sound and f.depth > 0:
            if f.best > -MATE_FLOOR and is_hopeless(s, p, level, move, order, gain):
                s.order[index] = SKIPPED
                continue
            if is_singular_candidate(s, level, move):
                f.num_tried -= 1
                begin_singular(s, level, move)
                return True

        # make the move
        after = make(p, np.uint64(move))
        store(s.rows, level + 1, after)
        s.frames[level + 1].in_check = in_check(after)
        f.moved = moved_index(p, move)
        f.nodes_before = s.control[0].nodes
        f.new_depth = f.depth - 1 + (f.extension if move == f.hash_move else 0)

        # the first move has the whole window, the others must prove that they are better
        is_pv = f.beta - f.alpha > 1
        f.full_window, f.reduced = 1, 0
        if f.num_searched == 0 or quiesces:
            search_child(s, level, -f.beta, -f.alpha, f.new_depth, 0 if is_pv else 1 - f.cut_node)
        else:
            reduction = 0 if is_sound else reduction_of(s, p, level, move, order, gain)
            f.full_window, f.reduced = 0, 1 if reduction > 0 else 0
            search_child(s, level, -f.alpha - 1, -f.alpha, f.new_depth - reduction, 1)
        return True
    return False


@inlined
def begin_child(s: EngineState, level: int) -> bool:
    """Set up the search of the next child: the null move, or the next move. False if the level is finished."""
    f = s.frames[level]
    if f.stage == NULL_MOVE:
        begin_null_move(s, level)
        return True
    return f.best < f.beta and next_move(s, level)


@inlined
def back_up(s: EngineState, level: int, value: Number) -> None:
    """Update best score, alpha and principal variation of a level with the score of its last move."""
    f = s.frames[level]
    index = level * MAX_MOVES + f.num_tried - 1
    move = np.int64(s.moves[index])
    f.num_searched += 1
    if level == 0:
        s.root_nodes[move] += s.control[0].nodes - f.nodes_before
    p = load(s.rows, level)
    if gain_of(p, move) == 0:
        f.num_quiets += 1
    f.best = max(f.best, value)
    if value <= f.alpha:
        return
    f.alpha, f.best_move = value, move
    child = s.frames[level + 1]
    s.pv[level, 0] = np.uint16(move)
    for i in range(child.pv_length):
        s.pv[level, i + 1] = s.pv[level + 1, i]
    f.pv_length = child.pv_length + 1
    if value >= f.beta and f.depth > 0:
        learn_cutoff(s, p, level)


@inlined
def receive(s: EngineState, level: int, value: Number) -> Number:
    """Take the score of a child, as the child sees it. Returns the level at which the search goes on."""
    f = s.frames[level]
    if f.stage == SINGULAR:
        # all other moves fail low: the hash move is extended; if even they are above beta, it is enough
        bound = f.hash_score - SINGULAR_CP_PER_PLY * f.depth
        f.stage = MOVES
        if value < bound:
            f.extension = 1
        elif bound >= f.beta:
            f.best, f.num_tried = bound, f.num_moves
        elif f.hash_score >= f.beta:
            f.extension = -1
        return level
    value = -value
    if f.stage == NULL_MOVE:
        f.stage = EXPAND
        if value >= f.beta:
            # a mate after passing proves none
            f.best, f.stage = value if value < MATE_FLOOR else f.beta, MOVES
        return level
    if f.reduced and value > f.alpha:
        f.reduced = 0
        search_child(s, level, -f.alpha - 1, -f.alpha, f.new_depth, 1 - f.cut_node)
        return level + 1
    if f.full_window == 0 and f.alpha < value < f.beta:
        f.full_window, f.reduced = 1, 0
        search_child(s, level, -f.beta, -f.alpha, f.new_depth, 0)
        return level + 1
    back_up(s, level, value)
    return level


@kernel(types.boolean(ENGINE_STATE, types.int64), allocates=False)
def run_search(s: EngineState, max_nodes: int) -> bool:
    """Search until the root is finished (True) or `max_nodes` nodes have been visited (False).

    A later call resumes the search. best of frame 0 and pv[0] hold the result so far."""
    control = s.control[0]
    level = control.level
    while level >= 0:
        f: Any = s.frames[level]  # a record
        value = UNKNOWN
        if f.stage == ENTER:
            if control.nodes >= max_nodes:
                control.level = level
                return False
            control.nodes += 1
            value = enter(s, level)
        elif f.stage == EXPAND:
            value = expand(s, level)
        elif f.stage == ROOT:
            enter_root(s)
        elif begin_child(s, level):
            level += 1
            prepare_child(s, level)
        else:
            value = finish(s, level)
        if value != UNKNOWN:
            level -= 1
            if level >= 0:
                level = receive(s, level, value)
    control.level = level
    return True
