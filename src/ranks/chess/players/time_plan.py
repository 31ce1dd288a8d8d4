"""How long a player thinks: from the limits it was given to two numbers of seconds."""

from __future__ import annotations

import math
from typing import NamedTuple

from ranks.chess.players.player import Clock, Limits

HORIZON = 30
"""Moves that the time left is spread over, where nothing says how many there will be."""
SHORTEST_S = 0.001


class TimePlan(NamedTuple):
    """Seconds from the moment that the player was asked."""

    enough_s: float
    """What the move should take; a search by depths begins no new one after half of it."""
    most_s: float
    """When it must have moved, finished or not."""


def time_plan(limits: Limits) -> TimePlan:
    """The plan for one move; infinite where no time is set."""
    most_s = math.inf if limits.movetime_s is None else max(limits.movetime_s, SHORTEST_S)
    if limits.clock is None or limits.infinite:
        return TimePlan(most_s, most_s)
    enough_s, clock_most_s = clock_plan(limits.clock)
    return TimePlan(min(enough_s, most_s), min(clock_most_s, most_s))


def clock_plan(clock: Clock) -> TimePlan:
    """Spread the time left over the moves to come and spend half of each increment, so that a reserve stays.

    The reserve settles where a share of it equals half an increment: at 2+0.02, about 0.3 s, ten times the overhead. No
    move takes more than a third of what is left, but for the last one before more time is given."""
    usable_s = max(clock.remaining_s - clock.overhead_s, 0.0)
    moves_to_go = min(clock.moves_to_go or HORIZON, HORIZON)
    enough_s = usable_s / moves_to_go + clock.increment_s / 2
    ceiling_s = usable_s * (0.8 if moves_to_go == 1 else 1 / 3)
    return TimePlan(
        max(min(enough_s, ceiling_s), SHORTEST_S),
        max(min(2.5 * enough_s, ceiling_s), SHORTEST_S),
    )
