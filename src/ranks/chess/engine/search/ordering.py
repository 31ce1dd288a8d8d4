"""Which move is searched first: the hash move, captures that win, killers and countermoves, then by history.

Losing captures come last; they are found out when their turn comes, since most of them are never searched.

The history of a move says how often it caused a beta cutoff: by its squares, and by piece and square together with
the move before it and its own side's last move (continuation history). Each update moves a value towards its limit by
a share of what is left, so that old results fade.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranks.chess.core.alphabeta_state import Number
from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.position import Position, kind_at
from ranks.chess.engine.search.exchange import gain_of, wins_at_least
from ranks.chess.engine.search.state import EngineState
from ranks.jit import inlined

HASH_MOVE, GOOD_CAPTURE, KILLER_1, KILLER_2, COUNTER = 1 << 40, 1 << 30, (1 << 28) + 2, (1 << 28) + 1, 1 << 28
BAD_CAPTURE = -(1 << 30)
SKIPPED = -(1 << 50)
"""The ordering score of a move that was not searched."""
HISTORY_LIMIT = 16384
MAX_BONUS = 1600


@inlined
def moved_index(p: Position, move: Number) -> Number:
    """piece * 64 + target of a move, with pieces 0 to 5 white and 6 to 11 black."""
    kind = np.int64(kind_at(p, np.uint64(move & 63)))
    return (np.int64(p.side) * 6 + kind - 1) * 64 + (move >> 6 & 63)


@inlined
def quiet_history(s: EngineState, p: Position, level: int, move: Number) -> Number:
    """The history of a quiet move at a level."""
    moved = moved_index(p, move)
    total = np.int64(s.history[np.int64(p.side), move & 4095])
    if level > 0:
        total += np.int64(s.continuations[s.frames[level - 1].moved, moved])
    if level > 1:
        total += np.int64(s.continuations[s.frames[level - 2].moved, moved])
    return total


@inlined
def order_moves(s: EngineState, p: Position, level: int, captures_only: bool) -> None:
    """Score the moves of a level for ordering. With `captures_only` drop quiet moves."""
    f = s.frames[level]
    at = level * MAX_MOVES
    counter = np.int64(s.counters[s.frames[level - 1].moved]) if level > 0 else 0
    kept = 0
    for index in range(at, at + f.num_moves):
        move = np.int64(s.moves[index])
        gain = gain_of(p, move)
        if gain == 0 and captures_only:
            continue
        if move == f.hash_move and not (captures_only and s.control[0].sound != 0):
            order = HASH_MOVE  # without pruning, not past the exchange test: it would depend on the table
        elif gain > 0:
            order = GOOD_CAPTURE + gain * 8 - np.int64(kind_at(p, np.uint64(move & 63)))
        elif move == f.killer_1:
            order = KILLER_1
        elif move == f.killer_2:
            order = KILLER_2
        elif move == counter:
            order = COUNTER
        else:
            order = quiet_history(s, p, level, move)
        s.moves[at + kept], s.order[at + kept] = np.uint16(move), order
        kept += 1
    f.num_moves, f.num_tried = kept, 0


@inlined
def pick_move(s: EngineState, p: Position, level: int) -> Number:
    """Bring the best untried move to the front. Returns its index in `moves`.

    A capture that loses material by static exchange goes behind the quiet moves instead."""
    f = s.frames[level]
    first, end = level * MAX_MOVES + f.num_tried, level * MAX_MOVES + f.num_moves
    while True:
        best = first
        for index in range(first + 1, end):
            if s.order[index] > s.order[best]:
                best = index
        order = s.order[best]
        if GOOD_CAPTURE <= order < HASH_MOVE and not wins_at_least(p, np.int64(s.moves[best]), 0):
            s.order[best] = order - GOOD_CAPTURE + BAD_CAPTURE
            continue
        s.moves[first], s.moves[best] = s.moves[best], s.moves[first]
        s.order[first], s.order[best] = order, s.order[first]
        f.num_tried += 1
        return first


@inlined
def shift(value: Any, bonus: Number) -> Any:
    """A history value after a bonus or malus."""
    old = np.int64(value)
    return np.int16(old + bonus - old * abs(bonus) // HISTORY_LIMIT)


@inlined
def learn(s: EngineState, p: Position, level: int, move: Number, bonus: Number) -> None:
    """Add a bonus to the histories of a quiet move."""
    moved, side = moved_index(p, move), np.int64(p.side)
    s.history[side, move & 4095] = shift(s.history[side, move & 4095], bonus)
    for back in range(1, min(level, 2) + 1):
        before = s.frames[level - back].moved
        s.continuations[before, moved] = shift(s.continuations[before, moved], bonus)


@inlined
def learn_cutoff(s: EngineState, p: Position, level: int) -> None:
    """After a beta cutoff by a quiet move: it becomes a killer and a countermove, and gains history; the quiet moves
    that were searched before it lose some."""
    f = s.frames[level]
    bonus = min(16 * f.depth * f.depth + 120 * f.depth, MAX_BONUS)
    at = level * MAX_MOVES
    if gain_of(p, f.best_move) == 0:
        if f.killer_1 != f.best_move:
            f.killer_2, f.killer_1 = f.killer_1, f.best_move
        if level > 0:
            s.counters[s.frames[level - 1].moved] = np.uint16(f.best_move)
        for index in range(at, at + f.num_tried):
            move = np.int64(s.moves[index])
            if s.order[index] != SKIPPED and gain_of(p, move) == 0:
                learn(s, p, level, move, bonus if move == f.best_move else -bonus)
