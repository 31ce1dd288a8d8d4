"""When a run saves, how often ranks poll, and what a session times; all with a clock that the test
moves."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from ranks import Learner, Loss, OptimConfig, Run, RunConfig, World, eval_mode, stream
from ranks.engine.distributed.comm import Comm
from ranks.engine.distributed.poll_interval import PollInterval
from ranks.engine.distributed.session import Session
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.checkpoints.save_policy import SavePolicy
from ranks.engine.runs.metrics_rows import MetricsRow
from tests.engine.group import join, run_ranks
from tests.engine.update.test_faults import Line, Nothing, data
from tests.engine.update.test_gradients import ITEMS


class Clock:
    """Seconds that pass only when the test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_checkpoint_is_due_by_time() -> None:
    clock = Clock()
    policy = SavePolicy("5m", 0, clock)
    clock.now_s = 300.0
    assert not policy.overdue()
    clock.now_s = 300.1
    assert policy.overdue()
    policy.done()
    assert not policy.overdue()


def test_a_checkpoint_is_due_by_iterations_by_request_or_by_agreement_and_never_twice() -> None:
    policy = SavePolicy("10", 20, Clock())
    assert not policy.overdue()
    assert [n for n in range(20, 45) if policy.due(n, agreed=False)] == [30, 40]
    assert policy.due(33, agreed=True)
    policy.request(0.5)
    assert policy.due(33, agreed=False)
    policy.saved_iteration = 33
    assert not policy.due(33, agreed=True)


@pytest.mark.parametrize(("given", "kept"), [(0.5, 0.5), (float("nan"), None), (float("inf"), None), (None, None)])
def test_only_a_finite_score_counts(given: float | None, kept: float | None) -> None:
    policy = SavePolicy("10", 0, Clock())
    policy.request(given)
    assert policy.score == kept


def polls(step_s: float, steps: int) -> list[int]:
    """After which of a phase's steps the ranks poll."""
    clock = Clock()
    interval = PollInterval(Comm(0, 1, staged=False), clock)
    found = []
    for step in range(1, steps + 1):
        clock.now_s += step_s
        if interval.due():
            found.append(step)
    return found


def test_ranks_poll_about_once_a_second_and_never_wait_more_than_eight_times_as_long_as_before() -> None:
    assert polls(2.0, 4) == [1, 2, 3, 4]
    assert polls(0.125, 30) == [1, 9, 17, 25]
    assert polls(0.001, 600) == [1, 9, 73, 585]


def test_a_block_inside_another_counts_for_the_outer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("ranks.engine.distributed.session.time.perf_counter", clock)
    session = Session()
    with session.timed("acting"):
        clock.now_s += 2.0
        with session.timed("evaluation"):
            clock.now_s += 1.0
    with session.timed("evaluation"):
        clock.now_s += 0.5
    assert session.times.seconds == {"acting": 3.0, "evaluation": 0.5}


def test_a_speed_is_that_of_training_without_the_evaluation() -> None:
    row = MetricsRow(iteration=9, time_s=0.0, iteration_s=3.0)
    row.times.seconds["evaluation"] = 2.0
    row.times.items["samples"] = 500
    assert row.as_json(peak_bytes=0)["time/samples_per_second"] == 500.0


# The first update of a session ----------------------------------------------------------------------------------------


def sum_loss(model: nn.Module, x_BF: torch.Tensor) -> Loss:
    return Loss(model(x_BF).square().sum(), len(x_BF))


def mean_loss(model: nn.Module, x_BF: torch.Tensor) -> Loss:
    return Loss(model(x_BF).square().mean(), len(x_BF))


def pair_loss(model: nn.Module, x_BF: torch.Tensor) -> Loss:
    """Compares the items of a micro-batch with each other: neither a sum of their losses nor a
    mean."""
    y_BF = model(x_BF)
    return Loss((y_BF @ y_BF.T).square().sum(), len(x_BF))


def zero_loss(model: nn.Module, x_BF: torch.Tensor) -> Loss:
    return Loss(0.0 * model(x_BF).sum(), len(x_BF))


LOSSES = {loss.__name__: loss for loss in (sum_loss, mean_loss, pair_loss, zero_loss)}


class DropoutLine(Line):
    def forward(self, x_BF: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(super().forward(x_BF), 0.5, self.training)


def warnings_of(world: World, loss_name: str) -> list[str]:
    learner = Learner(DropoutLine(), OptimConfig(schedule="constant"), world)
    found: list[str] = []
    world.session.emit = lambda event: found.append(event["text"])
    learner.time_step(LOSSES[loss_name], stream(data(), ITEMS, world).at(0))
    return [text for text in found if "mean" in text]


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
def test_a_mean_in_place_of_a_sum_is_warned_of_and_nothing_else_is(exact: bool, tmp_path: Path) -> None:
    for name in LOSSES:
        config = RunConfig(shards=4, exact=exact, micro_batch=4)
        ((warnings),) = run_ranks(1, warnings_of, name, config=config, tmp_path=tmp_path)
        assert len(warnings) == (name == "mean_loss"), name


def modes_after_timing(world: World) -> list[bool]:
    model = nn.Sequential(nn.Linear(5, 3), nn.Dropout(0.5))
    model[1].eval()
    learner = Learner(model, OptimConfig(schedule="constant"), world)
    learner.time_step(sum_loss, stream(data(), ITEMS, world).at(0))
    return [module.training for module in model]


def test_timing_leaves_the_mode_of_each_module(tmp_path: Path) -> None:
    config = RunConfig(shards=4)
    assert run_ranks(1, modes_after_timing, config=config, tmp_path=tmp_path) == [[True, False]]


def test_evaluation_mode_ends_with_the_mode_of_each_module() -> None:
    model = nn.Sequential(nn.Linear(5, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    model[2].eval()
    with eval_mode(model):
        assert not any(module.training for module in model.modules())
    assert [module.training for module in model.modules()] == [True, True, True, False]


def weights_after(config: RunConfig, *, long: bool) -> list[float]:
    """Three updates of a run, which times its first one unless its iterations are long."""
    world = join(config)
    try:
        torch.manual_seed(0)
        learner = Learner(DropoutLine(), OptimConfig(schedule="constant"), world, global_batch=ITEMS)
        assert isinstance(learner.model, DropoutLine)
        batches = stream(data(), ITEMS, world)
        with Run.open(Nothing(), world, keep=dict(learner=learner)) as run:
            for iteration in run.iterations(3, long=long):
                run.log(learner.step(sum_loss, batches.at(iteration)))
        run.finish()
        return learner.model.linear.weight.flatten().tolist()
    finally:
        world.leave()


def test_timing_the_first_update_changes_nothing(tmp_path: Path) -> None:
    config = RunConfig(threads=1, runs_dir=tmp_path)
    timed, untimed = (
        weights_after(RunConfig(**{**vars(config), "name": name}), long=long)
        for name, long in (("timed", False), ("untimed", True))
    )
    assert timed == untimed
    plans = {
        name: [e for e in read_rows(tmp_path / name / "events.jsonl") if e["event"] == "plan"]
        for name in ("timed", "untimed")
    }
    assert plans["timed"][0]["expected_s"] is not None
    assert plans["untimed"][0]["expected_s"] is None


def test_a_detached_session_drops_everything(tmp_path: Path) -> None:
    world = join(RunConfig(threads=1, runs_dir=tmp_path))
    world.session.note("no run is open")
    learner = Learner(Line(), OptimConfig(schedule="constant"), world)
    learner.step(sum_loss, stream(data(), ITEMS, world).at(0))
    world.session.drain()
    world.leave()
    assert list(tmp_path.iterdir()) == []
