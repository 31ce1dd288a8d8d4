"""An iteration of several ranks, computed by hand from the trace of one."""

from __future__ import annotations

import numpy as np
import pytest

from ranks.engine.liveness.beats import Collective
from ranks.hardware.forecast.replay import common_and_spread, limiting_term, replay
from ranks.hardware.forecast.trace import Call, IterationTrace, Trace, iterations_of
from ranks.hardware.links.curve import AllReduceCurve, Link

MB = 1_000_000


def link(megabytes_per_s: float, latency_s: float = 0.0) -> Link:
    """A link whose ring steps take latency + bytes / bandwidth, as two ranks would measure it."""
    sizes = tuple(2**power for power in range(3, 32))
    seconds = tuple(2 * latency_s + size / (megabytes_per_s * MB) for size in sizes)
    curve = AllReduceCurve(2, sizes, seconds)
    return Link("test", (curve,), curve, "by hand", 0.1)


def all_reduce(start_s: float, wait_s: float, megabytes: float) -> Call:
    return Call(Collective.ALL_REDUCE, int(megabytes * MB), start_s, wait_s)


@pytest.mark.parametrize(("ranks", "factor"), [(2, 1.0), (4, 1.5), (8, 1.75)])
def test_a_ring_sends_two_times_all_but_one_part(ranks: int, factor: float) -> None:
    assert link(100).all_reduce_s(ranks, 50 * MB) == pytest.approx(factor * 0.5, rel=1e-2)
    assert link(1e9, latency_s=0.001).all_reduce_s(ranks, 8) == pytest.approx(2 * (ranks - 1) * 0.001, rel=1e-2)


def test_a_curve_gives_back_what_was_measured() -> None:
    curve = AllReduceCurve(4, (1000, 10_000, 100_000), (0.001, 0.002, 0.02))
    found = Link("test", (curve,), curve, "", 0.1)
    for size, seconds in zip(curve.num_bytes, curve.seconds, strict=True):
        assert found.all_reduce_s(4, size) == pytest.approx(seconds)
    assert found.all_reduce_s(4, 1_000_000) == pytest.approx(0.2)
    assert found.all_reduce_s(1, 1_000_000) == 0.0


@pytest.mark.parametrize(
    ("calls", "exposed_s"),
    [
        ((all_reduce(0.2, 1.0, 50),), 0.0),  # 0.5 s, hidden behind work of 0.8 s
        ((all_reduce(0.8, 1.0, 50),), 0.3),
        ((all_reduce(1.0, 1.0, 50),), 0.5),
        ((all_reduce(0.2, 1.0, 50), all_reduce(0.4, 1.0, 50)), 0.2),  # the second one waits for the first one
        ((Call(Collective.ALL_GATHER, 25 * MB, 0.5, 0.5),), 0.25),
        ((Call(Collective.GATHER_OBJECTS, 25 * MB, 0.5, 0.5, on_host=True),), 0.25),
        # host and device have one channel here
        ((all_reduce(0.9, 1.0, 50), Call(Collective.SUM_HOST, 8, 0.95, 0.95, on_host=True)), 0.45),
    ],
)
def test_what_is_not_hidden_behind_work_is_exposed(calls: tuple[Call, ...], exposed_s: float) -> None:
    found = replay([IterationTrace(1.0, calls)], link(100), 2)
    assert found.work_s == pytest.approx(1.0)
    assert found.skew_s == pytest.approx(0.0, abs=1e-9)
    assert found.exposed_s == pytest.approx(exposed_s, abs=0.01)


@pytest.mark.parametrize(("ranks", "expected_maximum"), [(2, 0.564), (4, 1.029), (8, 1.424)])
def test_ranks_wait_for_the_slowest_one(ranks: int, expected_maximum: float) -> None:
    trace = [IterationTrace(1.0, (all_reduce(1.0, 1.0, 0.00001),))] * 256
    found = replay(trace, link(1e6), ranks, spread=0.1)
    assert found.skew_s == pytest.approx(0.1 * expected_maximum, rel=0.15), "standard deviations of a normal"
    assert found.seconds == pytest.approx(1 + found.skew_s, rel=0.01)
    assert replay(trace, link(1e6), ranks).seconds == pytest.approx(1.0, rel=1e-3), "equal iterations, no spread"


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_what_all_ranks_do_now_and_then_is_no_spread(ranks: int) -> None:
    """Every tenth iteration takes five times as long, on every rank."""
    works = [5.0 if i % 10 == 9 else 1.0 for i in range(200)]
    trace = [IterationTrace(s, (all_reduce(s, s, 0.00001),)) for s in works]
    assert replay(trace, link(1e6), ranks).seconds == pytest.approx(1.4, rel=1e-3)


def test_a_trend_is_no_spread_either() -> None:
    trace = [IterationTrace(s, (all_reduce(s, s, 0.00001),)) for s in np.linspace(1.0, 3.0, 101)]
    assert replay(trace, link(1e6), 8).seconds == pytest.approx(2.0, rel=0.05)


def test_small_differences_between_neighbours_are_differences_between_ranks() -> None:
    works = 1 + 0.05 * np.random.Generator(np.random.Philox(0)).standard_normal(2000)
    common_s, spread = common_and_spread(works.tolist())
    assert spread == pytest.approx(0.05, rel=0.25)
    assert common_s.mean() == pytest.approx(1.0, abs=0.01)
    assert common_s.std() < 0.04


def test_a_replay_depends_on_its_seed_alone() -> None:
    trace = [IterationTrace(s, (all_reduce(0.5 * s, s, 20),)) for s in (0.9, 1.0, 1.2, 0.95)]
    assert replay(trace, link(100), 4) == replay(trace, link(100), 4)
    assert replay(trace, link(100), 4, seed=1) != replay(trace, link(100), 4)


def test_the_largest_part_is_named() -> None:
    work = {"data": 0.1, "compute": 0.8, "other": 0.1}
    slow, fast = (replay([IterationTrace(1.0, (all_reduce(1.0, 1.0, 50),))], link(rate), 8) for rate in (10, 1000))
    assert limiting_term(slow, work) == "communication"
    assert limiting_term(fast, work) == "compute"
    assert limiting_term(fast, {"data": 0.8, "compute": 0.2}) == "data"


def test_a_recording_is_cut_into_iterations() -> None:
    calls = [all_reduce(0.5, 0.9, 1), all_reduce(1.5, 1.9, 1), all_reduce(1.7, 2.5, 1)]
    first, second = iterations_of([0.0, 1.0, 2.0], calls)
    assert first == IterationTrace(1.0, (all_reduce(0.5, 0.9, 1),))
    assert [call.start_s for call in second.calls] == pytest.approx([0.5, 0.7])
    assert [call.wait_s for call in second.calls] == pytest.approx([0.9, 1.0]), "a later wait is one at the end"


def test_a_trace_survives_its_file() -> None:
    iterations = (IterationTrace(1.0, (all_reduce(0.5, 0.9, 1),)), IterationTrace(2.0, ()))
    trace = Trace(2, iterations, {"compute": 1.0}, {"samples": 32.0}, 0.5, 0.1, True, 3.0, 1000)
    assert Trace.of_json(trace.as_json()) == trace
