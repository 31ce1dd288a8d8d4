"""How long a player thinks: from the limits it was given to two numbers of seconds."""

from __future__ import annotations

import math
from typing import NamedTuple

from ranks.chess.players.player import Clock, Limits

HORIZON = 30
"""Moves that the time left is spread over, where nothing says how many there will be."""
RESERVE = 15
"""So many moves may lose what is reckoned as overhead one after the other."""
SHORTEST_S = 0.001


class TimePlan(NamedTuple):
    """Seconds from the moment that the player was asked."""

    begin_s: float
    """A search by depths begins no new one after this: it would hardly be finished in time."""
    enough_s: float
    """A search that is as good at any moment ends here."""
    most_s: float
    """Finished or not, the player must have moved."""


def time_plan(limits: Limits) -> TimePlan:
    """The plan for one move; infinite where no time is set."""
    plans = [TimePlan(math.inf, math.inf, math.inf)]
    if limits.movetime_s is not None:
        plans.append(TimePlan(*[max(limits.movetime_s, SHORTEST_S)] * 3))
    if limits.clock is not None and not limits.infinite:
        plans.append(clock_plan(limits.clock))
    return TimePlan(*(min(seconds) for seconds in zip(*plans, strict=True)))


def clock_plan(clock: Clock) -> TimePlan:
    """Spread the time left, but for a reserve, over the moves to come, and spend half of each increment.

    Once only the reserve is left the player moves at once, so that the clock grows again by all of an increment that is
    not lost on the way. No move takes more than a third of what is left, unless more time comes right after it."""
    usable_s = clock.remaining_s - RESERVE * clock.overhead_s
    if usable_s <= 0:
        return TimePlan(0.0, SHORTEST_S, SHORTEST_S)
    moves_to_go = min(clock.moves_to_go or HORIZON, HORIZON)
    ceiling_s = max(usable_s * (0.8 if moves_to_go == 1 else 1 / 3), SHORTEST_S)
    enough_s = usable_s / moves_to_go + clock.increment_s / 2
    return TimePlan(min(enough_s / 2, ceiling_s), min(enough_s, ceiling_s), min(2.5 * enough_s, ceiling_s))
