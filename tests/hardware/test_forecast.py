"""Forecasts of a whole run: time, cost, choice, and forecasts and facts."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from ranks import Run, World
from ranks.cli.forecasting.table import compared, fact_rows
from ranks.engine.config import RunConfig
from ranks.engine.liveness.beats import Collective
from ranks.errors import UserError
from ranks.hardware.catalogue.gpus import find
from ranks.hardware.forecast.job import Forecast, ForecastInterval, best, forecast_run, num_saves
from ranks.hardware.forecast.ledger import ForecastLedger, settings_of
from ranks.hardware.forecast.other_gpu import speedup
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.record import record, record_steady
from ranks.hardware.forecast.rental import Rental, save_interval_s
from ranks.hardware.forecast.shared_cores import SharedCores
from ranks.hardware.forecast.trace import Call, IterationTrace, Trace
from ranks.hardware.links.curve import AllReduceCurve, Link
from ranks.hardware.short_runs.job import Job
from ranks.hardware.short_runs.rows import rows_of
from tests.toys import images

CURVE = AllReduceCurve(2, (8, 1024, 2**20), (1e-4, 1e-4, 1e-3))
LINK = Link("test", (CURVE,), CURVE, "by hand", 0.1)
FREE = Rental(None, 0.0, 0.0, 1.0)


def trace(ranks: int, work_s: float, **changes: Any) -> Trace:
    facts: dict[str, Any] = {
        "evaluation_s": 2.0,
        "save_s": 0.5,
        "saves_with_evaluation": False,
        "start_s": 3.0,
        "peak_bytes": 1000,
    } | changes
    iterations = tuple(IterationTrace(work_s * s, ()) for s in (0.99, 1.0, 1.01))
    return Trace(ranks, iterations, {"compute": work_s}, {"samples": 64.0}, **facts)


def profile(**changes: Any) -> Profile:
    facts: dict[str, Any] = {
        "workload": "images",
        "settings": settings_of({"width": 16}, {"exact": False}),
        "iterations": 100,
        "eval_every": 10,
        "save_every": "50",
        "device": "NVIDIA H100 80GB HBM3",
        "is_gpu": True,
        "threads": {1: 2, 2: 1},
        "recorded": "2026-11-23 12:00",
        "cores": 16,
        "gpus": 1,
        "traces": {1: trace(1, 1.0), 2: trace(2, 0.5)},
    }
    return Profile(**(facts | changes))


def test_the_time_of_a_run_is_the_sum_of_its_parts() -> None:
    found = forecast_run(profile(), trace(1, 1.0), LINK, FREE)
    assert found.run_s.middle == pytest.approx(3 + 100 * 1.0 + 10 * 2.0 + 2 * 0.5, rel=0.01)
    assert found.run_s.low < found.run_s.middle < found.run_s.high
    assert found.items_per_s["samples"] == pytest.approx(64, rel=0.01)
    assert found.iterations_in(found.run_s.middle).middle == pytest.approx(100)
    assert found.cost is None


def test_efficiency_with_the_same_and_with_a_larger_batch() -> None:
    one, two = (forecast_run(profile(), trace(n, s), LINK, FREE) for n, s in ((1, 1.0), (2, 0.8)))
    assert two.strong_efficiency(one) == pytest.approx(1.0 / (2 * 0.8), rel=0.02)
    assert two.weak_efficiency == pytest.approx(1.0, rel=0.02), "no collectives, so nothing is lost"
    assert forecast_run(profile(traces={}), trace(2, 0.5), LINK, FREE).weak_efficiency is None


def test_the_job_has_set_up_and_transfer_too() -> None:
    found = forecast_run(profile(), trace(1, 1.0), LINK, Rental(None, setup_s=300, transfer_s=60, unit_s=60))
    for job_s, run_s in zip(vars(found.job_s).values(), vars(found.run_s).values(), strict=True):
        assert job_s == pytest.approx(run_s + 360)


def test_a_started_unit_is_paid() -> None:
    rental = Rental(2.0, setup_s=300, transfer_s=60, unit_s=60)
    assert rental.paid_s(61) == 480
    assert rental.cost(61, 8) == pytest.approx(2.0 * 8 * 480 / 3600)
    assert rental.run_s(budget=2.0 * 8 * 480 / 3600, num_gpus=8) == 120
    assert rental.run_s(budget=0.01, num_gpus=8) == 0


def test_the_choice_keeps_to_the_deadline_or_the_budget() -> None:
    rental = Rental(1.0, setup_s=0, transfer_s=0, unit_s=1)
    one, two, four = (forecast_run(profile(), trace(n, s), LINK, rental) for n, s in ((1, 1.0), (2, 0.55), (4, 0.5)))
    every = (one, two, four)

    def chosen(deadline_s: float | None = None, budget: float | None = None) -> Forecast | None:
        return best(every, deadline_s=deadline_s, budget=budget)

    assert chosen() is one, "the fewest GPU-hours"
    assert chosen(deadline_s=100) is two
    assert chosen(deadline_s=10) is None
    assert one.cost is not None
    assert two.cost is not None
    assert chosen(budget=1.0) is four, "the fastest that it pays for"
    assert chosen(budget=two.cost.high) is two
    assert chosen(budget=one.cost.low / 2) is None
    late = Rental(1.0, setup_s=40, transfer_s=20, unit_s=1)
    one, two = (forecast_run(profile(), trace(n, s), LINK, late) for n, s in ((1, 1.0), (2, 0.55)))
    assert two.run_s.high < 100 < two.job_s.high, "with set-up and transfer it is late"
    assert best((one, two), deadline_s=100, budget=None) is None
    assert best((one, two), deadline_s=160, budget=None) is two
    by_the_hour = Rental(1.0, setup_s=0, transfer_s=0, unit_s=3600)
    slow, fast = (forecast_run(profile(), trace(1, s), LINK, by_the_hour) for s in (2.0, 1.0))
    assert best((slow, fast), deadline_s=None, budget=None) is fast, "the same hour is paid"


@pytest.mark.parametrize(
    ("save_every", "expected"), [("10", 10), ("30", 4), ("50s", 2), ("5m", 1), ("0.5m", 4), ("1h", 1)]
)
def test_saves_of_a_run(save_every: str, expected: int) -> None:
    assert num_saves(save_every, 100, 1.0) == expected


def test_the_interval_of_saves() -> None:
    assert save_interval_s(20, 6 * 3600) == pytest.approx(15.5 * 60, rel=0.01)


def test_another_gpu_widens_the_interval() -> None:
    h100, b200 = find("NVIDIA H100 80GB HBM3"), find("NVIDIA B200")
    assert h100 is not None
    assert b200 is not None
    same = forecast_run(profile(), trace(1, 1.0), LINK, FREE, speedup(h100, h100))
    other = forecast_run(profile(), trace(1, 1.0), LINK, FREE, speedup(h100, b200))
    assert other.iteration_s.middle < same.iteration_s.middle < other.iteration_s.high, "launches may be the limit"
    width = (other.iteration_s.high - other.iteration_s.low) / other.iteration_s.middle
    assert width > 5 * (same.iteration_s.high - same.iteration_s.low) / same.iteration_s.middle
    assert "H100 SXM" in speedup(h100, b200).reason


# The cores of a CPU machine --------------------------------------------------------------------------------------


def measured_cores(folder: Path, alone_s: Sequence[float], together_s: Sequence[Sequence[float]]) -> SharedCores:
    """From one file of four rounds of two pieces each."""
    content = {"alone_s": [[s, s] for s in alone_s], "together_s": [list(piece) for piece in together_s]}
    path = folder / "cores.json"
    path.write_text(json.dumps(content))
    return SharedCores.of([path])


def test_what_two_cores_at_once_need(tmp_path: Path) -> None:
    found = measured_cores(tmp_path, [1.0] * 4, [(1.1, 1.3)] * 8)
    assert found.slower == pytest.approx(1.2)
    assert found.spread == pytest.approx(0.2 / 2**0.5 / 1.2)
    assert found.drift == pytest.approx(0)
    assert measured_cores(tmp_path, [1.0] * 4, [(0.9, 0.9)] * 8).slower == 1, "two are not faster than one"


def test_how_much_the_speed_changes_with_time(tmp_path: Path) -> None:
    halves = [1.0, 1.2, 1.0, 1.2]
    both = measured_cores(tmp_path, halves, [(1.5 * s, 1.5 * s) for s in halves for _ in range(2)])
    assert both.spread == 0
    assert both.drift == pytest.approx(0.1 / 1.1, rel=0.1)
    assert measured_cores(tmp_path, halves, []).drift == pytest.approx(0.1 / 1.1, rel=0.2), "one core alone"


def test_a_forecast_of_two_ranks_knows_what_two_cores_at_once_need() -> None:
    cores = profile(shared_cores=SharedCores(slower=1.2, spread=0.1, drift=0.15))
    one, two = (forecast_run(cores, trace(n, 1.0), LINK, FREE, cores=2.0).iteration_s for n in (1, 2))
    assert one.middle == pytest.approx(1.0)
    assert two.middle == pytest.approx(1.2, rel=0.05)
    for found in (one, two):
        assert found.low < (1 - 1.6 * 0.15) * found.middle
        assert found.high > (1 + 1.6 * 0.15) * found.middle
    waits = tuple(IterationTrace(1.0, (Call(Collective.ALL_REDUCE, 8, 1.0, 1.0),)) for _ in range(3))
    of_equal = forecast_run(profile(), replace(trace(2, 1.0), iterations=waits), LINK, FREE)
    of_cores = forecast_run(cores, replace(trace(2, 1.0), iterations=waits), LINK, FREE)
    assert of_cores.replayed.skew_s > 0.03 > of_equal.replayed.skew_s, "each rank waits for the core that is slow"


# A real workload -------------------------------------------------------------------------------------------------


def recorded(folder: Path, ranks: int, **engine: Any) -> Trace:
    config = images.Config(global_batch=64, num_images=256)
    job = Job("images", images.train, config, RunConfig(threads=1, **engine))
    return record(job, torch.device("cpu"), ranks, folder, budget_s=0.2, started_s=0.0)


def test_one_rank_of_four_does_its_share_and_calls_what_four_call(tmp_path: Path) -> None:
    found = recorded(tmp_path, 4)
    parameters = sum(p.numel() for p in images.build(images.Config()).parameters())
    assert len(found.iterations) >= 3
    for iteration in found.iterations:
        (call,) = iteration.calls  # one bucket
        assert call.num_bytes >= 4 * parameters
        assert 0 <= call.start_s <= call.wait_s <= iteration.work_s
    assert found.items["samples"] == pytest.approx(64, rel=0.01)
    assert found.phases_s["compute"] > 0
    assert found.evaluation_s > 0
    assert found.save_s > 0
    assert found.saves_with_evaluation
    assert found.start_s > 0
    assert found.host_cpu_s is None or found.host_cpu_s > 0


def test_the_exact_sum_is_recorded(tmp_path: Path) -> None:
    found = recorded(tmp_path, 2, exact=True)
    kinds = [[call.kind.name for call in iteration.calls] for iteration in found.iterations]
    assert kinds == [["ALL_TO_ALL", "ALL_GATHER"]] * len(kinds)


@dataclass(frozen=True)
class LongConfig:
    iterations: int = 1000


def long_train(cfg: LongConfig, world: World, *, seen: list[int]) -> None:
    """A loop of long iterations that notes their numbers."""
    with Run.open(cfg, world, keep={}) as run:
        for iteration in run.iterations(cfg.iterations, long=True):
            seen.append(iteration)
            time.sleep(0.002)


def test_iterations_are_recorded_in_the_middle_of_sections_of_the_run(tmp_path: Path) -> None:
    """So work that begins late is seen, as the burn-in of graph-coloring from iteration 50 on."""
    config = images.Config(iterations=1000, global_batch=64, num_images=256)
    job = Job("images", images.train, config, RunConfig(threads=1))
    found = record_steady(job, torch.device("cpu"), 1, tmp_path, budget_s=2.0, iteration_s=0.01, sections=4)
    sections = [[row["iteration"] - 1 for row in rows_of(tmp_path / "sections" / str(i))] for i in range(4)]
    assert [numbers[0] for numbers in sections] == [125, 375, 625, 875]
    assert all(after == before + 1 for numbers in sections for before, after in pairwise(numbers))
    assert len(found.iterations) == sum(len(numbers) - 2 for numbers in sections), "not the first and the last one"


def test_long_iterations_follow_from_those_before(tmp_path: Path) -> None:
    seen: list[int] = []
    job = Job("long", partial(long_train, seen=seen), LongConfig(), RunConfig(threads=1))
    record(job, torch.device("cpu"), 1, tmp_path, budget_s=0.03, started_s=0.0)
    starts = [after for before, after in pairwise([-1, *seen]) if after != before + 1]
    assert set(starts) == {0}


# Files -----------------------------------------------------------------------------------------------------------


def test_a_profile_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    profile().write(path)
    assert Profile.read(path) == profile()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 99}', '{"format": 3, "traces": 3}', '{"format": 3, "traces": {"1": {}}}']
)
def test_a_file_that_is_no_profile(text: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(UserError, match="--profile"):
        Profile.read(path)


def a_run(
    folder: Path,
    started: float,
    iteration_s: float,
    width: int = 16,
    ranks: int = 2,
    shards: Sequence[int] | None = None,
    gpu: str = "NVIDIA H100 80GB HBM3",
) -> Path:
    folder.mkdir(parents=True)
    identity = {"workload": "images", "engine": {"exact": False}, "config": {"width": width}}
    facts = {"format": 2, "identity": identity, "hardware": {"cpu": "EPYC", "gpu": gpu}}
    (folder / "run.json").write_text(json.dumps(facts))
    rows = [{"iteration": i + 1, "time_s": 1 + iteration_s * (i + 1)} for i in range(100)]
    sessions = [
        {"event": "opened", "time": started, "joined": started, "iteration": 0, "ranks": ranks},
        {"event": "finished", "time": started + 80, "iteration": 100},
    ]
    plan = {"event": "plan", "ranks": ranks, "threads": 1, "shards_per_rank": shards or [64 // ranks] * ranks}
    files = {"metrics": rows, "sessions": sessions, "events": [plan]}
    for name, content in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in content))
    return folder


def test_the_ledger_compares_a_run_with_the_forecast_before_it(tmp_path: Path) -> None:
    ledger = ForecastLedger(tmp_path)
    ledger.add(profile(), [forecast_run(profile(), trace(2, 0.5), LINK, FREE)])
    noted = json.loads((tmp_path / "forecasts.jsonl").read_text())["time"]
    folders = [
        a_run(tmp_path / "good", noted + 10, 0.51),
        a_run(tmp_path / "slow", noted + 10, 0.8),
        a_run(tmp_path / "before", noted - 10, 0.5),
        a_run(tmp_path / "other", noted + 10, 0.5, width=32),
        a_run(tmp_path / "three", noted + 10, 0.5, ranks=3),
        a_run(tmp_path / "shares", noted + 10, 0.5, shards=[40, 24]),
    ]
    with (tmp_path / "forecasts.jsonl").open("a") as file:
        file.write('torn\n{"time": 5}\n')
    good, slow = ledger.compare(folders)
    assert (good.run, slow.run) == ("good", "slow")
    assert good.is_within
    assert not slow.is_within
    assert good.error == pytest.approx(0.5 / 0.51 - 1, abs=0.01)
    assert good.fact_run_s == pytest.approx(80)


def test_a_forecast_for_another_card_is_compared_with_the_run_on_it(tmp_path: Path) -> None:
    """Before renting it is made for H200 and B200 from a profile of an H100, and for the H100 itself."""
    ledger, made = ForecastLedger(tmp_path), forecast_run(profile(), trace(2, 0.5), LINK, FREE)
    for cards, iteration_s in (((), 0.5), (("H200 SXM",), 0.4), (("B200",), 0.2)):
        ledger.add(profile(), [replace(made, iteration_s=ForecastInterval.around(iteration_s, 0.1))], cards)
    noted = json.loads((tmp_path / "forecasts.jsonl").read_text().splitlines()[-1])["time"]
    run = partial(a_run, started=noted + 10, iteration_s=0.41)
    folders = [run(tmp_path / "h100"), run(tmp_path / "h200", gpu="NVIDIA H200"), run(tmp_path / "l4", gpu="NVIDIA L4")]
    h100, h200 = ledger.compare(folders)
    assert (h100.run, h100.forecast_s.middle, h100.guessed) == ("h100", 0.5, "")
    assert (h200.run, h200.forecast_s.middle) == ("h200", 0.4)
    assert h200.guessed == "H200 SXM, recorded on NVIDIA H100 80GB HBM3"
    head, _, row = compared([h100, h200]).splitlines()
    assert head.endswith("forecast for")
    assert row.endswith(h200.guessed)
    assert "forecast for" not in compared([h100])
    assert list(fact_rows(h200))[-1][0] == f"forecast for {h200.guessed}"


def test_a_forecast_for_another_card_does_not_know_the_threads_there(tmp_path: Path) -> None:
    ledger, made = ForecastLedger(tmp_path), forecast_run(profile(), trace(2, 0.5), LINK, FREE)
    ledger.add(profile(threads={2: 7}), [made])
    noted = json.loads((tmp_path / "forecasts.jsonl").read_text())["time"]
    folder = a_run(tmp_path / "run", noted + 10, 0.5)  # with one thread
    assert list(ledger.compare([folder])) == []
    ledger.add(profile(threads={2: 7}), [made], ["H100 SXM"])
    later = a_run(tmp_path / "later", noted + 100, 0.5)
    assert [found.run for found in ledger.compare([later])] == ["later"]
