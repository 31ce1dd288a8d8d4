"""How time is shared out over a game."""

from __future__ import annotations

import math

import pytest

from ranks.chess.players.player import OVERHEAD_S, Clock, Limits
from ranks.chess.players.time_plan import clock_plan, time_plan


@pytest.mark.parametrize(("base_s", "increment_s"), [(2.0, 0.02), (10.0, 0.1), (1.0, 0.02), (60.0, 1.0)])
@pytest.mark.parametrize("lost_share", [0.0, 0.25, 0.9])
def test_time_is_kept_over_a_long_game(base_s: float, increment_s: float, lost_share: float) -> None:
    """However long the game and whatever part of the increment each move loses, the reserve is
    hardly touched."""
    left_s = base_s
    for _ in range(500):
        plan = clock_plan(Clock(left_s, 9.0, increment_s))
        assert 0 <= plan.deepen_s <= plan.enough_s <= plan.most_s < left_s
        left_s += increment_s - plan.enough_s - lost_share * increment_s
        assert left_s > 15 * OVERHEAD_S - increment_s


def test_time_without_an_increment_lasts() -> None:
    left_s, moves = 5.0, 0
    while left_s > 0 and moves < 200:
        left_s -= clock_plan(Clock(left_s, 9.0)).enough_s + 0.001
        moves += 1
    assert moves == 200


@pytest.mark.parametrize(
    ("base_s", "increment_s", "least_moves"), [(60.0, 2.0, 300), (15.0, 10.0, 300), (60.0, 0.0, 48), (5.0, 1.1, 300)]
)
def test_time_is_kept_where_each_move_loses_an_overhead_of_a_second(
    base_s: float, increment_s: float, least_moves: int
) -> None:
    left_s, moves = base_s, 0
    while moves < 300 and left_s > 1.0:
        plan = clock_plan(Clock(left_s, 9.0, increment_s, overhead_s=1.0))
        assert plan.most_s < max(left_s - 1.0, 0.002)
        left_s += increment_s - plan.enough_s - 1.0
        moves += 1
    assert moves >= least_moves


def test_a_large_overhead_needs_no_large_reserve() -> None:
    assert clock_plan(Clock(15.0, 15.0, 10.0, overhead_s=1.0)).enough_s > 2
    assert clock_plan(Clock(10.0, 10.0, moves_to_go=1, overhead_s=1.0)).enough_s > 4


@pytest.mark.parametrize(
    ("clock", "enough_s"),
    [
        (Clock(60.0, 9.0, 1.0), 2.48),
        (Clock(2.0, 9.0, 0.02), 0.06),
        (Clock(10.0, 9.0, 0.1), 0.37),
        (Clock(300.0, 9.0), 10.0),
    ],
)
def test_the_usual_overhead_takes_little(clock: Clock, enough_s: float) -> None:
    assert clock_plan(clock).enough_s == pytest.approx(enough_s, rel=0.06)


def test_time_plans_at_the_edges() -> None:
    assert clock_plan(Clock(10.0, 10.0, 0.0, moves_to_go=1)).most_s < 10.0 - 0.03
    assert clock_plan(Clock(-1.0, 1.0)).most_s <= 0.001
    assert clock_plan(Clock(2.0, 2.0, overhead_s=0.5)).most_s <= 0.001
    assert clock_plan(Clock(2.0, 2.0, overhead_s=0.0)).enough_s == 2.0 / 30
    assert time_plan(Limits()).most_s == time_plan(Limits(infinite=True, clock=Clock(1, 1))).most_s == math.inf
    assert time_plan(Limits(movetime_s=3.0)) == (3.0, 3.0, 3.0)
