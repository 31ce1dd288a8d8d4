"""When iterative deepening ends before its limits: after an iteration, by how settled the choice is."""

from __future__ import annotations

from typing import NamedTuple

from ranks.chess.players.player import Choice, Limits
from ranks.chess.players.time_plan import TimePlan

BRANCHING_SHARE = 0.55
"""An iteration is begun if less than this share of the time for the move is used: it would hardly end in time."""
FALLEN_CP = 30


class Progress(NamedTuple):
    """How the search of a move went so far."""

    best: Choice
    num_moves: int
    """Moves that were searched."""
    steady: int
    """Iterations since the best move changed."""
    fallen_cp: int
    """By how much the score fell with the last iteration; a mate is far from any other score."""
    best_share: float
    """The share of the last iteration's nodes below the best move."""


def is_settled(progress: Progress, limits: Limits, plan: TimePlan, elapsed_s: float) -> bool:
    """Whether no further iteration is begun.

    A mate as short as `limits.mate` ends any search. Else a mate ends the search of one line if the depth is twice its
    moves. With pruning it need not be the shortest, so where a depth or a mate is asked for only a mate in one move
    does."""
    mate_in, depth = progress.best.mate_in, progress.best.depth
    if limits.mate is not None and mate_in is not None and 0 < mate_in <= limits.mate:
        return True
    if limits.infinite:
        return False
    most_moves = max(depth // 2, 1) if limits.depth is None and limits.mate is None else 1
    if mate_in is not None and limits.multipv == 1 and abs(mate_in) <= most_moves:
        return True
    if limits.clock is None:
        return False
    if progress.num_moves == 1:
        return True
    # a best move that stays and takes most of the nodes needs less time, a falling score more
    factor = 1.25 - 0.1 * min(progress.steady, 5)
    factor *= 1.5 - 0.75 * progress.best_share
    factor *= 1.4 if progress.fallen_cp > FALLEN_CP else 1.0
    return elapsed_s > BRANCHING_SHARE * plan.enough_s * factor
