"""Time management: how many seconds a player may use for a move under given limits."""

from __future__ import annotations

import math
from typing import NamedTuple

from ranks.chess.players.player import OVERHEAD_S, Clock, Limits

HORIZON = 30
"""The number of moves to plan for if the time control does not state one."""
RESERVE, MOST_RESERVE_S = 14, 0.5
"""The reserve is one move overhead, and so many more up to so many seconds."""
SHORTEST_S = 0.001


class TimePlan(NamedTuple):
    """Seconds since the player was asked for a move."""

    deepen_s: float
    """Iterative deepening starts no new iteration after this, because it would hardly finish in
    time."""
    enough_s: float
    """A search that can stop at any moment ends here."""
    most_s: float
    """The hard limit: the player must have moved, even in the middle of an iteration."""


def time_plan(limits: Limits) -> TimePlan:
    """The plan for one move; infinite if no time limit is set."""
    plans = [TimePlan(math.inf, math.inf, math.inf)]
    if limits.movetime_s is not None:
        plans.append(TimePlan(*[max(limits.movetime_s, SHORTEST_S)] * 3))
    if limits.clock is not None and not limits.infinite:
        plans.append(clock_plan(limits.clock))
    return TimePlan(*(min(seconds) for seconds in zip(*plans, strict=True)))


def clock_plan(clock: Clock) -> TimePlan:
    """Spread the remaining time, minus a reserve, over the moves to go; use half of each increment.

    A move uses less if the time would not last where each move to go lost the whole overhead; of a usual overhead the
    reserve takes care. When only the reserve is left the player moves at once, so that the increments refill the clock.
    No move uses more than a third of the remaining time, unless the next time control starts right after it."""
    usable_s = clock.remaining_s - clock.overhead_s - min(RESERVE * clock.overhead_s, MOST_RESERVE_S)
    moves_to_go = min(clock.moves_to_go or HORIZON, HORIZON)
    lasting_s = clock.remaining_s / moves_to_go + clock.increment_s - max(clock.overhead_s - OVERHEAD_S, 0.0)
    enough_s = min(usable_s / moves_to_go + clock.increment_s / 2, lasting_s)
    if usable_s <= 0 or enough_s <= SHORTEST_S:
        return TimePlan(0.0, SHORTEST_S, SHORTEST_S)
    ceiling_s = max(usable_s * (0.8 if moves_to_go == 1 else 1 / 3), SHORTEST_S)
    return TimePlan(min(enough_s / 2, ceiling_s), min(enough_s, ceiling_s), min(2.5 * enough_s, ceiling_s))
