"""Forecasts of ranks that are not equal, with numbers that are worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ranks.engine.liveness.beats import Collective
from ranks.engine.sharding.assignment import ShardAssignment
from ranks.errors import UserError
from ranks.hardware.catalogue.gpus import by_name, cards_of
from ranks.hardware.catalogue.links import catalogued_link, link_of_cards
from ranks.hardware.forecast.job import Speedup, forecast_run
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.rental import Rental
from ranks.hardware.forecast.trace import Call, IterationTrace, Trace
from ranks.hardware.forecast.unequal import (
    LineByShare,
    RankDevice,
    forecast_unequal,
    memory_line,
    most_shards,
    shares_by_speed,
)
from ranks.hardware.links.curve import AllReduceCurve, Link

GB = 10**9
CURVE = AllReduceCurve(2, (8, 1024, 2**20), (1e-4, 1e-4, 1e-3))
LINK = Link("test", (CURVE,), CURVE, "by hand", 0.1)
FREE = Rental(None, 0.0, 0.0, 1.0)


def trace(num_ranks: int, work_s: float, peak_gb: float, calls: tuple[Call, ...] = ()) -> Trace:
    """Three equal iterations, so that ranks differ by nothing but their devices and shares."""
    iterations = (IterationTrace(work_s, calls),) * 3
    return Trace(num_ranks, iterations, {"compute": work_s}, {"samples": 64.0}, 2.0, 0.5, False, 3.0, int(peak_gb * GB))


def profile(num_ranks: int = 2, calls: tuple[Call, ...] = (), **changes: Any) -> Profile:
    """One rank alone takes 1.0 s and 16 GB, one of two 0.6 s and 10 GB: 0.2 s and 4 GB are fixed."""
    facts: dict[str, Any] = {
        "workload": "images",
        "settings": {"exact": False, "shards": 64},
        "iterations": 100,
        "eval_every": 10,
        "save_every": "50",
        "device": "NVIDIA GeForce RTX 4090",
        "is_gpu": True,
        "threads": {1: 1, num_ranks: 1},
        "recorded": "2026-11-25 12:00",
        "cores": 16,
        "gpus": 1,
        "traces": {
            1: trace(1, 1.0, 16),
            num_ranks: trace(num_ranks, 0.2 + 0.8 / num_ranks, 4 + 12 / num_ranks, calls),
        },
    }
    return Profile(**(facts | changes))


def device(speed: float, usable_gb: float | None = None, *, low: float | None = None, high: float = 0.0) -> RankDevice:
    usable = None if usable_gb is None else usable_gb * GB
    return RankDevice(f"card {speed:g}", Speedup(low or speed, speed, high or speed), usable)


def test_a_rank_s_work_is_a_line_through_what_was_measured() -> None:
    line = LineByShare.through(alone=1.0, of_several=0.6, num_ranks=2)
    assert (line.fixed, line.slope) == pytest.approx((0.2, 0.8))
    assert line.at(0.75) == pytest.approx(0.8)
    assert LineByShare.through(alone=0.5, of_several=0.6, num_ranks=2) == LineByShare(0.6, 0.0), "noise"
    assert LineByShare.through(alone=2.0, of_several=0.6, num_ranks=2) == LineByShare(0.0, 1.2), "nothing below 0"


def test_the_slowest_rank_is_the_time_of_an_iteration() -> None:
    """The fast card has three of four shards: w(3/4) = 0.8 s at twice the speed. The other one has w(1/4) = 0.4 s."""
    found = forecast_unequal(profile(), [device(2.0), device(1.0)], (3, 1), LINK, FREE)
    assert found.whole.shards_per_rank == (48, 16)
    assert [rank.work_s for rank in found.ranks] == pytest.approx([0.4, 0.4])
    assert found.whole.iteration_s.middle == pytest.approx(0.4)
    assert [rank.peak_bytes / GB for rank in found.ranks] == pytest.approx([4 + 12 * 0.75, 4 + 12 * 0.25])


def test_with_equal_shares_the_fast_card_waits_for_the_slow_one() -> None:
    found = forecast_unequal(profile(), [device(2.0), device(1.0)], (1, 1), LINK, FREE)
    assert found.whole.iteration_s.middle == pytest.approx(0.6)
    assert [rank.waits_s for rank in found.ranks] == pytest.approx([0.3, 0.0])
    assert found.slowest == 1
    assert found.whole.limited_by == "compute, card 1 (rank 1)"
    slower = forecast_unequal(profile(), [device(2.0), device(0.5)], (1, 1), LINK, FREE).whole
    assert slower.run_s.middle == pytest.approx(3 + 100 * 1.2 + 10 * 4.0 + 2 * 0.5), "evaluations wait for it too"


def test_a_collective_begins_when_the_slow_card_has_called_it() -> None:
    """Its time is that of two ranks, and nothing hides it."""
    calls = (Call(Collective.ALL_REDUCE, 2**20, 0.6, 0.6),)
    found = forecast_unequal(profile(2, calls), [device(2.0), device(1.0)], (1, 1), LINK, FREE)
    assert found.whole.iteration_s.middle == pytest.approx(0.6 + 1e-3)
    slow_link = LINK.slower(2000)
    limited = forecast_unequal(profile(2, calls), [device(2.0), device(1.0)], (1, 1), slow_link, FREE)
    assert limited.whole.iteration_s.middle == pytest.approx(0.6 + 2.0)
    assert limited.whole.limited_by == "communication, test"


def test_the_host_s_cores_limit_unequal_ranks_too() -> None:
    """Two ranks of 3 CPU seconds in an iteration need 6, which 4 cores give in 1.5 s."""
    each = replace(trace(2, 0.6, 10), host_cpu_s=3.0)
    found = forecast_unequal(
        profile(traces={1: trace(1, 1.0, 16), 2: each}), [device(2.0), device(1.0)], (1, 1), LINK, FREE, cores=4
    )
    assert found.whole.iteration_s.middle == pytest.approx(1.5)
    assert found.whole.limited_by == "the host's cores"


def test_equal_devices_and_shares_are_the_plain_forecast() -> None:
    plain = forecast_run(profile(), profile().traces[2], LINK, FREE)
    found = forecast_unequal(profile(), [device(1.0)] * 2, (1, 1), LINK, FREE)
    assert found.whole.iteration_s == plain.iteration_s
    assert found.whole.run_s == plain.run_s


def test_a_slow_card_whose_speed_is_certain_does_not_widen_the_interval() -> None:
    plain = forecast_run(profile(), profile().traces[2], LINK, FREE).iteration_s
    found = forecast_unequal(profile(), [device(2.0), device(0.5)], (1, 1), LINK, FREE).whole.iteration_s
    assert found.high / found.middle == pytest.approx(plain.high / plain.middle)
    assert found.low / found.middle == pytest.approx(plain.low / plain.middle)


def test_a_guessed_speed_widens_the_interval_and_so_do_other_shares() -> None:
    certain = forecast_unequal(profile(), [device(2.0), device(1.0)], (1, 1), LINK, FREE).whole.iteration_s
    guessed = [device(2.0), device(1.0, low=0.5, high=1.5)]
    wide = forecast_unequal(profile(), guessed, (1, 1), LINK, FREE).whole.iteration_s
    assert wide.middle == certain.middle
    assert wide.high == pytest.approx(2 * certain.high), "the slow card at half its speed"
    assert wide.low == pytest.approx(certain.low / 1.5)
    other = forecast_unequal(profile(), [device(2.0), device(1.0)], (3, 1), LINK, FREE).whole.iteration_s
    assert other.high / other.middle > certain.high / certain.middle


def test_shares_follow_speed_as_those_of_ranks_scale_do() -> None:
    assert shares_by_speed(profile(), [device(2.0), device(1.0)]) == (2, 1)
    assert shares_by_speed(profile(), [device(1.0), device(1.0)]) == (1, 1)
    assert shares_by_speed(profile(3), [device(1.0), device(3.0), device(1.0)]) == (1, 3, 1)


def test_shares_keep_to_the_memory_of_each_card() -> None:
    """7 GB hold 1/4 of the items: 4 + 12/4. By speed it would carry half."""
    devices = [device(1.0, usable_gb=40), device(1.0, usable_gb=7)]
    assert most_shards(memory_line(profile(), 2), 7 * GB, 64) == 16
    shares = shares_by_speed(profile(), devices)
    assert shares is not None
    carried = [len(ShardAssignment.make(64, 2, shares).shards_of(rank)) for rank in (0, 1)]
    assert carried == [48, 16]
    assert forecast_unequal(profile(), devices, shares, LINK, FREE).fits
    equal = forecast_unequal(profile(), devices, (1, 1), LINK, FREE)
    assert [rank.fits for rank in equal.ranks] == [True, False]


@pytest.mark.parametrize("usable_gb", [3.9, 4.1])
def test_no_shares_fit_a_card_that_is_too_small_for_one_shard(usable_gb: float) -> None:
    """A rank with one of 64 shards needs 4 + 12/64 = 4.1875 GB."""
    assert shares_by_speed(profile(), [device(1.0), device(1.0, usable_gb)]) is None
    assert most_shards(memory_line(profile(), 2), usable_gb * GB, 64) == 0


def test_no_shares_fit_where_all_cards_together_hold_too_little() -> None:
    assert shares_by_speed(profile(), [device(1.0, usable_gb=7)] * 2) is None, "half of the shards"


def test_shares_of_another_number_of_ranks_are_refused() -> None:
    with pytest.raises(UserError, match="give one share per rank"):
        forecast_unequal(profile(), [device(1.0)] * 2, (1, 1, 1), LINK, FREE)


# Names and links -------------------------------------------------------------------------------------------------


def test_cards_are_listed_with_plus_and_star() -> None:
    assert [gpu.name for gpu in cards_of("rtx6000ada+rtx4090")] == ["RTX 6000 Ada", "RTX 4090"]
    assert [gpu.name for gpu in cards_of("L40S*2 + l4")] == ["L40S", "L40S", "L4"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rtx6000ada+rtx4091", "did you mean RTX 4090"),
        ("l4+", "'' is no card"),
        ("l4*0+l4", "'l4*0' is no card"),
        ("l4*two", "'l4*two' is no card"),
        ("l4*-1", "'l4*-1' is no card"),
        ("*2", "'*2' is no card"),
        ("l4*64+l40s", "65 cards"),
        ("l4*99999999999999999999", "is no card"),
    ],
)
def test_lists_that_name_no_cards(text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        cards_of(text)
    assert said in f"{caught.value.found} {caught.value.do}"


def test_the_link_of_unlike_cards_is_that_of_the_slowest() -> None:
    """PCIe 5 against PCIe 4: a ring is as fast as its slowest card."""
    slow, fast = by_name("rtx4090"), by_name("rtx5090")
    found, of_slow, of_fast = link_of_cards([fast, slow]), catalogued_link(slow, 2), catalogued_link(fast, 2)
    assert found is not None
    assert of_slow is not None
    assert of_fast is not None
    assert found.all_reduce_s(2, GB) == of_slow.all_reduce_s(2, GB) > of_fast.all_reduce_s(2, GB)
    assert "RTX 5090 and RTX 4090" in found.source
    assert found.uncertainty >= of_slow.uncertainty
    assert link_of_cards([slow, slow]) == of_slow


@pytest.mark.parametrize("text", ["h200*2+a100*2", "h100+rtx4090", "h100nvl+rtx4090", "mi300x+l4"])
def test_a_card_with_nvlink_shares_no_machine_with_others(text: str) -> None:
    assert link_of_cards(cards_of(text)) is None
