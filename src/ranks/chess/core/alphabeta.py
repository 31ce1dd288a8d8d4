"""Alpha-beta search for chess. It returns the score of plain minimax.

Fail-soft alpha-beta (Knuth & Moore 1975; Fishburn 1983) with a quiescence search of captures. Moves
are ordered by the hash move, then captures by most valuable victim and least valuable attacker
(MVV-LVA), then killer moves. The search is a loop over levels instead of a recursion, so it can
stop after any number of nodes and resume later.

The score is exactly that of minimax under the rules of the game: a table entry is used only at its
own depth, and only where neither a repetition nor the fifty-move rule can change it
(`path_independent`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import types

from ranks.chess.core.alphabeta_state import (
    BEGIN,
    ENTERING,
    EXACT,
    HISTORY,
    LEVEL,
    LEVELS,
    LOWER_BOUND,
    MATE,
    MATE_FLOOR,
    NODES,
    SEARCH_STATE,
    UNKNOWN,
    UPPER_BOUND,
    Number,
    SearchState,
)
from ranks.chess.core.bits import ZERO, lsb
from ranks.chess.core.evaluation import VALUE_CP, evaluate
from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.position import HALF_MOVES, Position, attackers, kind_at, load
from ranks.chess.core.rules import FIFTY_MOVES, legal_moves, play, repetitions
from ranks.jit import helper, kernel
from ranks.search.game import LEGAL_MOVES_TYPE, LOST, PLAY_TYPE


@helper
def probe(s: SearchState, p: Position, level: int) -> tuple[Number, Number]:
    """Probe the transposition table for a score that causes a cutoff, or UNKNOWN, and a hash move,
    or 0."""
    index = p.key & np.uint64(len(s.table_keys) - 1)
    word = s.table_entries[index]
    if s.table_keys[index] ^ word != p.key ^ s.salt[0]:
        return UNKNOWN, 0
    entry = np.int64(word)
    move = entry >> 16 & 0xFFFF
    if not s.path_independent[level] or entry >> 32 & 0xFF != s.depth[level]:
        return UNKNOWN, move
    value, bound = (entry & 0xFFFF) - 32768, entry >> 40
    if value > MATE_FLOOR:
        value -= level
    elif value < -MATE_FLOOR:
        value += level
    settled = bound == EXACT or (bound == LOWER_BOUND and value >= s.beta[level])
    if settled or (bound == UPPER_BOUND and value <= s.alpha[level]):
        return value, move
    return UNKNOWN, move


@helper
def store_entry(s: SearchState, level: int) -> None:
    """Store the result of a level in the transposition table.

    Mate scores are stored relative to the level."""
    value = s.best[level]
    bound = EXACT
    if value >= s.beta[level]:
        bound = LOWER_BOUND
    elif value <= s.original_alpha[level]:
        bound = UPPER_BOUND
    if value > MATE_FLOOR:
        value += level
    elif value < -MATE_FLOOR:
        value -= level
    key = s.rows[level, 12]
    index = key & np.uint64(len(s.table_keys) - 1)
    entry = np.uint64(value + 32768 | s.best_move[level] << 16 | s.depth[level] << 32 | bound << 40)
    s.table_keys[index] = key ^ s.salt[0] ^ entry
    s.table_entries[index] = entry


@helper
def in_check(p: Position) -> bool:
    us, them = (p.white, p.black) if p.side == ZERO else (p.black, p.white)
    return attackers(p, lsb(p.kings & us), p.white | p.black, p.side) & them != ZERO


@helper
def captured_value(p: Position, move: Number) -> Number:
    """The centipawns that a move wins by capture or promotion; 0 for a quiet move."""
    to = np.uint64(move >> 6 & 63)
    kind = np.int64(kind_at(p, to))
    gain = VALUE_CP[kind - 1] if kind else 0
    if move >> 12:
        return gain + VALUE_CP[move >> 12] - VALUE_CP[0]
    if (p.en_passant >> to) & np.uint64(1) and kind_at(p, np.uint64(move & 63)) == np.uint64(1):
        return VALUE_CP[0]
    return gain


@helper
def order_moves(
    s: SearchState, p: Position, level: int, num_moves: int, hash_move: Number, captures_only: bool
) -> None:
    """Score the moves for ordering: hash move, captures (MVV-LVA), killers.

    With `captures_only` drop quiet moves."""
    at = level * MAX_MOVES
    kept = 0
    for index in range(num_moves):
        move = np.int64(s.moves[at + index])
        gain = captured_value(p, move)
        if captures_only and gain == 0:
            continue
        order = 0
        if move == hash_move:
            order = 1 << 20
        elif gain != 0:
            order = (1 << 12) + gain * 8 - np.int64(kind_at(p, np.uint64(move & 63)))
        elif move == s.killers[level, 0]:
            order = 2
        elif move == s.killers[level, 1]:
            order = 1
        s.moves[at + kept], s.order[at + kept] = move, order
        kept += 1
    s.num_moves[level], s.num_tried[level] = kept, 0


@helper
def visit(legal_moves: Callable[..., int], s: SearchState, level: int, positional: bool, quiescence: bool) -> Number:
    """Visit the position of a level for the first time.

    Returns its score, or UNKNOWN if its moves must be searched."""
    p = load(s.rows, level)
    depth, end = s.depth[level], HISTORY + level
    s.keys[end] = p.key
    s.pv_length[level] = s.best_move[level] = 0
    s.original_alpha[level], s.best[level] = s.alpha[level], -UNKNOWN
    halfmove_clock = np.int64(p.clocks & HALF_MOVES)
    seen_before = repetitions(p, s.keys, s.counters[BEGIN], end) > 0
    s.repeated[level] = seen_before or (halfmove_clock > 0 and s.repeated[level - 1] != 0)
    # A score may go into the table only if the history cannot change it: neither the fifty-move
    # rule nor a repetition is within reach. (A leaf in check is searched one ply deeper; a third
    # occurrence takes at least five plies.)
    out_of_reach = halfmove_clock + depth + 1 < np.int64(FIFTY_MOVES) and (halfmove_clock == 0 or depth + 1 < 5)
    s.path_independent[level] = depth >= 0 and out_of_reach and s.repeated[level] == 0
    hash_move = 0
    if depth >= 0:
        value, hash_move = probe(s, p, level)
        if value != UNKNOWN:
            return value
    num_moves = legal_moves(s.rows, level, s.keys, s.counters[BEGIN], end, s.moves, level * MAX_MOVES)
    if num_moves < 0:
        return level - MATE if num_moves == LOST else 0
    # At depth 0 and below: the static evaluation is a lower bound (stand pat), and only captures
    # are searched.
    captures_only = depth < 0 or (depth == 0 and not in_check(p))
    if captures_only or (not quiescence and depth == 0) or level == LEVELS - 1:
        value = evaluate(p, positional)
        if not quiescence or value >= s.beta[level] or level == LEVELS - 1:
            return value
        s.best[level] = value
        s.alpha[level] = max(s.alpha[level], value)
    order_moves(s, p, level, num_moves, hash_move, captures_only)
    return UNKNOWN


@helper
def pick_move(s: SearchState, level: int) -> Number:
    """Pick the untried move with the highest ordering score."""
    at = level * MAX_MOVES
    here = at + s.num_tried[level]
    best = here
    for index in range(here + 1, at + s.num_moves[level]):
        if s.order[index] > s.order[best]:
            best = index
    s.moves[here], s.moves[best] = s.moves[best], s.moves[here]
    s.order[here], s.order[best] = s.order[best], s.order[here]
    s.num_tried[level] += 1
    return np.int64(s.moves[here])


@helper
def back_up(s: SearchState, level: int, value: Number) -> None:
    """Update best score, alpha, PV and killers of a level with the score of its last move."""
    if value <= s.best[level]:
        return
    move = np.int64(s.moves[level * MAX_MOVES + s.num_tried[level] - 1])
    s.best[level], s.best_move[level] = value, move
    if value <= s.alpha[level]:
        return
    s.alpha[level] = value
    s.pv[level, 0] = move
    length = s.pv_length[level + 1]
    for i in range(length):
        s.pv[level, i + 1] = s.pv[level + 1, i]
    s.pv_length[level] = length + 1
    if value >= s.beta[level] and captured_value(load(s.rows, level), move) == 0 and s.killers[level, 0] != move:
        s.killers[level, 1] = s.killers[level, 0]
        s.killers[level, 0] = move


def run_search(state: SearchState, positional: int, quiescence: int, max_nodes: int) -> bool:
    """Search until the root is finished (True) or `max_nodes` nodes have been visited (False).

    A later call resumes the search. best[0] and pv[0] hold the result so far; best_move[0] is 0 if
    there is none yet."""
    return _run_search(play, legal_moves, state, positional, quiescence, max_nodes)


@kernel(types.boolean(PLAY_TYPE, LEGAL_MOVES_TYPE, SEARCH_STATE, types.int64, types.int64, types.int64))
def _run_search(
    play: Callable[..., None],
    legal_moves: Callable[..., int],
    s: SearchState,
    positional: int,
    quiescence: int,
    max_nodes: int,
) -> bool:
    level, entering = s.counters[LEVEL], s.counters[ENTERING] != 0
    while level >= 0:
        # First visit: the node may be settled by the table, a rule or the evaluation.
        if entering:
            if s.counters[NODES] >= max_nodes:
                s.counters[LEVEL], s.counters[ENTERING] = level, 1
                return False
            s.counters[NODES] += 1
            value = visit(legal_moves, s, level, positional != 0, quiescence != 0)
            entering = False
            if value == UNKNOWN:
                continue
        # Moves are left and there was no beta cutoff: descend into the next move.
        elif s.num_tried[level] < s.num_moves[level] and s.best[level] < s.beta[level]:
            play(s.rows, level, s.rows, level + 1, np.uint16(pick_move(s, level)))
            s.depth[level + 1] = s.depth[level] - 1
            s.alpha[level + 1], s.beta[level + 1] = -s.beta[level], -s.alpha[level]
            level, entering = level + 1, True
            continue
        # The level is finished: store it, and back its score up into its parent.
        else:
            if s.path_independent[level]:
                store_entry(s, level)
            value = s.best[level]
        level -= 1
        if level >= 0:
            back_up(s, level, -value)
    s.counters[LEVEL] = level
    return True
