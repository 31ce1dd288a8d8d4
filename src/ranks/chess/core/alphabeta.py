"""Alpha-beta over chess: the value of plain minimax, without most of its work.

Fail-soft alpha-beta (Knuth & Moore 1975; Fishburn 1983), captures played out at the leaves, moves ordered by the
transposition table, most valuable victim and least valuable attacker, and killers. It is a loop over frames, not a
recursion, so it can stop after any number of nodes and go on later.

The value is exactly that of minimax under the rules of the game: a table entry counts only at its own depth, and only
where neither repetition nor the count of 50 moves can matter (`pure`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import types

from ranks.chess.core.alphabeta_tree import (
    AT_LEAST,
    AT_MOST,
    BEGIN,
    ENTERING,
    EXACT,
    LEVEL,
    LEVELS,
    MATE,
    MATE_FLOOR,
    NODES,
    PAST,
    TREE,
    UNKNOWN,
    Number,
    Tree,
)
from ranks.chess.core.bits import ZERO, first
from ranks.chess.core.evaluation import VALUE_CP, evaluate
from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.position import HALF_MOVES, Position, attackers, kind_at, load
from ranks.chess.core.rules import FIFTY_MOVES, legal_moves, play, repetitions
from ranks.jit import helper, kernel
from ranks.search.game import LEGAL_MOVES_TYPE, LOST, PLAY_TYPE


@helper
def probe(t: Tree, p: Position, level: int) -> tuple[Number, Number]:
    """What the table knows of a level: a value that settles it, or UNKNOWN; and a move to try first, or 0."""
    index = p.key & np.uint64(len(t.table_keys) - 1)
    word = t.table_entries[index]
    if t.table_keys[index] ^ word != p.key ^ t.salt[0]:
        return UNKNOWN, 0
    entry = np.int64(word)
    move = entry >> 16 & 0xFFFF
    if not t.pure[level] or entry >> 32 & 0xFF != t.depth[level]:
        return UNKNOWN, move
    value, bound = (entry & 0xFFFF) - 32768, entry >> 40
    if value > MATE_FLOOR:
        value -= level
    elif value < -MATE_FLOOR:
        value += level
    settled = bound == EXACT or (bound == AT_LEAST and value >= t.beta[level])
    if settled or (bound == AT_MOST and value <= t.alpha[level]):
        return value, move
    return UNKNOWN, move


@helper
def write_table(t: Tree, level: int) -> None:
    """Write what was found at a level into the table."""
    value = t.best[level]
    bound = EXACT
    if value >= t.beta[level]:
        bound = AT_LEAST
    elif value <= t.floor[level]:
        bound = AT_MOST
    if value > MATE_FLOOR:
        value += level
    elif value < -MATE_FLOOR:
        value -= level
    key = t.rows[level, 12]
    index = key & np.uint64(len(t.table_keys) - 1)
    entry = np.uint64(value + 32768 | t.best_move[level] << 16 | t.depth[level] << 32 | bound << 40)
    t.table_keys[index] = key ^ t.salt[0] ^ entry
    t.table_entries[index] = entry


@helper
def in_check(p: Position) -> bool:
    us, them = (p.white, p.black) if p.side == ZERO else (p.black, p.white)
    return attackers(p, first(p.kings & us), p.white | p.black, p.side) & them != ZERO


@helper
def captured_value(p: Position, move: Number) -> Number:
    """The centipawns that a move takes, or wins by promotion; 0 for a quiet one."""
    to = np.uint64(move >> 6 & 63)
    kind = np.int64(kind_at(p, to))
    gain = VALUE_CP[kind - 1] if kind else 0
    if move >> 12:
        return gain + VALUE_CP[move >> 12] - VALUE_CP[0]
    if (p.en_passant >> to) & np.uint64(1) and kind_at(p, np.uint64(move & 63)) == np.uint64(1):
        return VALUE_CP[0]
    return gain


@helper
def arrange(t: Tree, p: Position, level: int, num_moves: int, hash_move: Number, captures_only: bool) -> None:
    """Give every move its place in the order, and drop the quiet ones where only captures are looked at."""
    at = level * MAX_MOVES
    kept = 0
    for index in range(num_moves):
        move = np.int64(t.moves[at + index])
        gain = captured_value(p, move)
        if captures_only and gain == 0:
            continue
        order = 0
        if move == hash_move:
            order = 1 << 20
        elif gain != 0:
            order = (1 << 12) + gain * 8 - np.int64(kind_at(p, np.uint64(move & 63)))
        elif move == t.killers[level, 0]:
            order = 2
        elif move == t.killers[level, 1]:
            order = 1
        t.moves[at + kept], t.order[at + kept] = move, order
        kept += 1
    t.num_moves[level], t.num_tried[level] = kept, 0


@helper
def enter(legal_moves: Callable[..., int], t: Tree, level: int, positional: bool, quiescence: bool) -> Number:
    """Look at the position of a level for the first time: its value, or UNKNOWN where its moves have to be tried."""
    p = load(t.rows, level)
    depth, end = t.depth[level], PAST + level
    t.keys[end] = p.key
    t.pv_length[level] = t.best_move[level] = 0
    t.floor[level], t.best[level] = t.alpha[level], -UNKNOWN
    half_moves = np.int64(p.clocks & HALF_MOVES)
    repeated = repetitions(p, t.keys, t.state[BEGIN], end) > 0
    t.doubled[level] = repeated or (half_moves > 0 and t.doubled[level - 1] != 0)
    # a leaf in check looks one ply further; a position of the past comes up twice more after five plies at the earliest
    never_late = half_moves + depth + 1 < np.int64(FIFTY_MOVES) and (half_moves == 0 or depth + 1 < 5)
    t.pure[level] = depth >= 0 and never_late and t.doubled[level] == 0
    hash_move = 0
    if depth >= 0:
        value, hash_move = probe(t, p, level)
        if value != UNKNOWN:
            return value
    num_moves = legal_moves(t.rows, level, t.keys, t.state[BEGIN], end, t.moves, level * MAX_MOVES)
    if num_moves < 0:
        return level - MATE if num_moves == LOST else 0
    captures_only = depth < 0 or (depth == 0 and not in_check(p))
    if captures_only or (not quiescence and depth == 0) or level == LEVELS - 1:
        value = evaluate(p, positional)
        if not quiescence or value >= t.beta[level] or level == LEVELS - 1:
            return value
        t.best[level] = value
        t.alpha[level] = max(t.alpha[level], value)
    arrange(t, p, level, num_moves, hash_move, captures_only)
    return UNKNOWN


@helper
def next_move(t: Tree, level: int) -> Number:
    """The move of a level that is to be tried next; the untried ones stay behind it."""
    at = level * MAX_MOVES
    here = at + t.num_tried[level]
    best = here
    for index in range(here + 1, at + t.num_moves[level]):
        if t.order[index] > t.order[best]:
            best = index
    t.moves[here], t.moves[best] = t.moves[best], t.moves[here]
    t.order[here], t.order[best] = t.order[best], t.order[here]
    t.num_tried[level] += 1
    return np.int64(t.moves[here])


@helper
def take(t: Tree, level: int, value: Number) -> None:
    """The move tried last at a level turned out to be worth `value`."""
    if value <= t.best[level]:
        return
    move = np.int64(t.moves[level * MAX_MOVES + t.num_tried[level] - 1])
    t.best[level], t.best_move[level] = value, move
    if value <= t.alpha[level]:
        return
    t.alpha[level] = value
    t.pv[level, 0] = move
    length = t.pv_length[level + 1]
    for i in range(length):
        t.pv[level, i + 1] = t.pv[level + 1, i]
    t.pv_length[level] = length + 1
    if value >= t.beta[level] and captured_value(load(t.rows, level), move) == 0 and t.killers[level, 0] != move:
        t.killers[level, 1] = t.killers[level, 0]
        t.killers[level, 0] = move


def go_on(tree: Tree, positional: int, quiescence: int, max_nodes: int) -> bool:
    """Search until the root is settled (True), or the tree has `max_nodes` nodes in all (False); `best` and `pv` of
    level 0 are what is known by then, best_move[0] is 0 if nothing is."""
    return _go_on(play, legal_moves, tree, positional, quiescence, max_nodes)


@kernel(types.boolean(PLAY_TYPE, LEGAL_MOVES_TYPE, TREE, types.int64, types.int64, types.int64))
def _go_on(
    play: Callable[..., None],
    legal_moves: Callable[..., int],
    t: Tree,
    positional: int,
    quiescence: int,
    max_nodes: int,
) -> bool:
    level, entering = t.state[LEVEL], t.state[ENTERING] != 0
    while level >= 0:
        if entering:
            if t.state[NODES] >= max_nodes:
                t.state[LEVEL], t.state[ENTERING] = level, 1
                return False
            t.state[NODES] += 1
            value = enter(legal_moves, t, level, positional != 0, quiescence != 0)
            entering = False
            if value == UNKNOWN:
                continue
        elif t.num_tried[level] < t.num_moves[level] and t.best[level] < t.beta[level]:
            play(t.rows, level, t.rows, level + 1, np.uint16(next_move(t, level)))
            t.depth[level + 1] = t.depth[level] - 1
            t.alpha[level + 1], t.beta[level + 1] = -t.beta[level], -t.alpha[level]
            level, entering = level + 1, True
            continue
        else:
            if t.pure[level]:
                write_table(t, level)
            value = t.best[level]
        level -= 1
        if level >= 0:
            take(t, level, -value)
    t.state[LEVEL] = level
    return True
