"""The static evaluation of a level of a search: with tables or with the net, in centipawns for the side to move."""

from __future__ import annotations

import numpy as np

from ranks.chess.core.alphabeta_state import MATE_FLOOR, Number
from ranks.chess.core.position import Position, load
from ranks.chess.engine.nnue.accumulator import refresh, update
from ranks.chess.engine.nnue.features import output_bucket_of
from ranks.chess.engine.nnue.inference import propagate
from ranks.chess.engine.search.state import EngineState
from ranks.chess.engine.tables import count_board, count_move, tapered
from ranks.jit import inlined

LARGEST_EVAL = MATE_FLOOR - 1000


@inlined
def prepare_root(s: EngineState) -> None:
    """Compute what the evaluation of level 0 is made of."""
    p = load(s.rows, 0)
    if s.control[0].use_net:
        for perspective in range(2):
            refresh(s.net.feature_weights_FH, s.net.feature_bias_H, p, perspective, s.accumulators, 0)
        s.frames[0].accumulated = 1
    else:
        count_board(s.table_values, p, s.frames[0])


@inlined
def prepare_child(s: EngineState, level: int) -> None:
    """After a move to a level: update the sums of the tables. The accumulators wait until an evaluation needs them."""
    if s.control[0].use_net:
        s.frames[level].accumulated = 0
    else:
        before, after = load(s.rows, level - 1), load(s.rows, level)
        count_move(s.table_values, before, after, s.frames[level - 1], s.frames[level])


@inlined
def accumulate(s: EngineState, level: int) -> None:
    """Bring the accumulators of a level up to date, from the nearest level above that has them."""
    done = level
    while s.frames[done].accumulated == 0:
        done -= 1
    for at in range(done + 1, level + 1):
        before, after = load(s.rows, at - 1), load(s.rows, at)
        for perspective in range(2):
            update(s.net.feature_weights_FH, s.net.feature_bias_H, before, after, perspective, s.accumulators, at)
        s.frames[at].accumulated = 1


@inlined
def evaluate_level(s: EngineState, p: Position, level: int) -> Number:
    """The evaluation of the position at a level."""
    if s.control[0].use_net:
        accumulate(s, level)
        score = propagate(s.net, s.accumulators, level, np.int64(p.side), s.net_inputs, output_bucket_of(p))
    else:
        score = tapered(s.frames[level], p.side)
    return min(max(score, -LARGEST_EVAL), LARGEST_EVAL)
