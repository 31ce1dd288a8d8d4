"""Faults of one rank are handled by all ranks in the same way: non-finite numbers and wrong
counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ranks import GaveUp, Learner, Loss, Run, RunConfig, UserError, World, stream
from tests.engine.group import run_ranks
from tests.engine.update.test_gradients import ITEMS, PLAIN, Points

BAD_ITEM = 3


class Line(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 3)
        with torch.no_grad():
            self.linear.weight.fill_(0.1)
            self.linear.bias.fill_(0.2)

    def forward(self, x_BF: Tensor) -> Tensor:
        return self.linear(x_BF)


def data() -> Points:
    """Item 3 has a first feature that no other item has."""
    points = Points(ITEMS, False)
    points.x_NF = points.x_NF.float()
    points.x_NF[BAD_ITEM, 0] = 1000.0
    return points


def nan_loss(model: nn.Module, x_BF: Tensor) -> Loss:
    factor_B = torch.where(x_BF[:, 0] == 1000.0, float("nan"), 1.0)
    return Loss((model(x_BF).square().sum(1) * factor_B).sum(), len(x_BF))


def infinite_slope(model: nn.Module, x_BF: Tensor) -> Loss:
    """A finite loss whose gradient is not: the square root of 0."""
    each_B = model(x_BF).square().sum(1)
    return Loss(each_B.sum() + (each_B[x_BF[:, 0] == 1000.0] * 0.0).sqrt().sum(), len(x_BF))


def mild_loss(model: nn.Module, x_BF: Tensor) -> Loss:
    return Loss(model(x_BF)[x_BF[:, 0] != 1000.0].square().sum(), len(x_BF))


def one_bad_update(world: World, loss_name: str) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    world.session.emit = events.append
    points = data()
    learner = Learner(Line(), PLAIN, world)
    assert isinstance(learner.model, Line)
    batches = stream(points, ITEMS, world)
    losses = {"nan_loss": nan_loss, "infinite_slope": infinite_slope}
    learner.step(mild_loss, batches.at(0))
    learner.drain()
    before = learner.model.linear.weight.detach().clone()
    bad = learner.step(losses[loss_name], batches.at(1))
    learner.step(mild_loss, batches.at(2))
    carries_it = any(BAD_ITEM in s.ids.tolist() for s in batches.at(1).shards)
    learner.drain()
    return {
        "skipped": bad.read().skipped,
        "events": events,
        "carries_it": carries_it,
        "weight": learner.model.linear.weight.detach().tolist(),
        "moved": bool((learner.model.linear.weight != before).any()),
        "updates": learner.updates,
        "optimizer_step": float(learner.state_dict()["optimizer"]["step"]),
    }


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("loss_name", ["nan_loss", "infinite_slope"])
def test_a_nan_on_one_rank_skips_the_update_on_all_and_is_named(loss_name: str, exact: bool, tmp_path: Path) -> None:
    config = RunConfig(shards=8, exact=exact)
    results = run_ranks(3, one_bad_update, loss_name, config=config, tmp_path=tmp_path)
    guilty = [rank for rank, r in enumerate(results) if r["carries_it"]]
    for r in results:
        assert r["skipped"]
        assert r["moved"], "the updates around it count"
        assert (r["updates"], r["optimizer_step"]) == (3, 2.0)
        assert r["weight"] == results[0]["weight"]
        assert torch.isfinite(torch.tensor(r["weight"])).all()
        skipped = [e for e in r["events"] if e["event"] == "skipped_update"]
        assert [(e["rank"], e["update"]) for e in skipped] == [(guilty[0], 1)]
        problem = "the loss is NaN (in the" if loss_name == "nan_loss" else "the gradient of linear."
        assert skipped[0]["problem"].startswith(problem)
        assert skipped[0]["tensor"] in ("linear.weight", "linear.bias")
        assert skipped[0]["loss_finite"] == (loss_name == "infinite_slope")


def three_bad_updates(world: World) -> str:
    learner = Learner(Line(), PLAIN, world)
    batches = stream(data(), ITEMS, world)
    try:
        for iteration in range(5):
            learner.step(nan_loss, batches.at(iteration))
    except GaveUp as error:
        return f"{learner.updates}: {error}"
    return "continued"


def test_three_non_finite_losses_in_a_row_end_the_run(tmp_path: Path) -> None:
    for text in run_ranks(2, three_bad_updates, config=RunConfig(shards=8), tmp_path=tmp_path):
        assert text.startswith("3: 3 losses in a row were not finite, the last at update 2\nasked: update 2\n")
        assert "found: the loss is NaN (in the micro-batch of items " in text
        assert "do: check the loss function and the data of these items: no update was made before" in text


def two_bad_updates_a_resume_and_a_third_one(world: World) -> str:
    first, again = Learner(Line(), PLAIN, world), Learner(Line(), PLAIN, world)
    batches = stream(data(), ITEMS, world)
    for iteration in range(2):
        first.step(nan_loss, batches.at(iteration))
    first.drain()
    again.load_state_dict(first.state_dict())
    again.step(nan_loss, batches.at(2))
    try:
        again.drain()
    except GaveUp as error:
        return str(error)
    return "continued"


def test_losses_in_a_row_count_on_after_a_crash(tmp_path: Path) -> None:
    (text,) = run_ranks(1, two_bad_updates_a_resume_and_a_third_one, config=RunConfig(shards=8), tmp_path=tmp_path)
    assert text.startswith("3 losses in a row were not finite, the last at update 2")


def bad_from_the_third_update(world: World) -> str:
    learner = Learner(Line(), PLAIN, world)
    batches = stream(data(), ITEMS, world)
    try:
        with Run.open(Nothing(), world, keep=dict(learner=learner)) as run:
            for iteration in run.iterations(9):
                learner.step(mild_loss if iteration < 2 else nan_loss, batches.at(iteration))
    except GaveUp as error:
        return str(error)
    return "continued"


@dataclass(frozen=True)
class Nothing:
    """A workload without settings."""


def test_the_checkpoint_with_finite_weights_is_named(tmp_path: Path) -> None:
    config = RunConfig(shards=8, runs_dir=tmp_path / "runs", name="r", save_every="1")
    for text in run_ranks(2, bad_from_the_third_update, config=config, tmp_path=tmp_path):
        newest = max((tmp_path / "runs" / "r" / "checkpoints").iterdir())
        assert text.endswith(f"{newest} holds the finite weights of iteration {int(newest.name)}")


def always_infinite_slope(model: nn.Module, x_BF: Tensor) -> Loss:
    each_B = model(x_BF).square().sum(1)
    return Loss(each_B.sum() + (each_B * 0.0).sqrt().sum(), len(x_BF))


def many_skipped_updates(world: World) -> str:
    learner = Learner(Line(), PLAIN, world)
    batches = stream(data(), ITEMS, world)
    try:
        for iteration in range(15):
            learner.step(always_infinite_slope, batches.at(iteration))
    except GaveUp as error:
        return f"{learner.updates}: {error}"
    return "continued"


def test_ten_skipped_updates_in_a_row_end_a_run_whose_losses_are_finite(tmp_path: Path) -> None:
    for text in run_ranks(2, many_skipped_updates, config=RunConfig(shards=8), tmp_path=tmp_path):
        assert text.startswith("10: 10 updates in a row were skipped, the last at update 9\nasked: update 9\n")
        assert "found: the gradient of linear." in text
        assert "do: check the loss function" in text


def error_of_count(world: World, count: float, on_rank: int) -> str:
    """`count`: what the loss of rank `on_rank` says; that of the other ranks is 0."""
    learner = Learner(Line(), PLAIN, world)

    def loss(model: nn.Module, x_BF: Tensor) -> Loss:
        return Loss(model(x_BF).square().sum(), count if world.rank == on_rank else 0)  # type: ignore[arg-type]

    try:
        learner.step(loss, stream(data(), ITEMS, world).at(0))
        learner.drain()
    except UserError as error:
        return f"{error.asked}: {error.found}"
    return "no error"


@pytest.mark.parametrize(
    ("count", "found"),
    [
        (-1, "it is -1"),
        (float("nan"), "it is nan"),
        (float("inf"), "it is inf"),
        (torch.tensor(3), "it is a tensor"),
        ("3", "it is '3'"),
        (0, "at update 0 it is zero on all ranks together"),
        (2**24 + 2, "at update 0 it adds up to 1.678e+07; it is exact up to 16,777,216 in this precision"),
        (10**60, "at update 0 it adds up to 1e+60; it is exact up to 16,777,216 in this precision"),
        (2**24, None),
        (2.5, None),
    ],
)
def test_a_wrong_count_is_bad_input(count: Any, found: str | None, tmp_path: Path) -> None:
    """The first such step of a lone rank, without a process."""
    world = World.join(RunConfig(threads=1, shards=8, runs_dir=tmp_path), device="cpu", workload="test")
    try:
        text = error_of_count(world, count, on_rank=0)
    finally:
        world.leave()
    assert text == (f"Loss.count: {found}" if found else "no error")


def test_a_rank_without_items_has_a_count_of_zero(tmp_path: Path) -> None:
    """Only the sum over ranks counts."""
    config = RunConfig(shards=8)
    assert run_ranks(2, error_of_count, 16, 1, config=config, tmp_path=tmp_path) == ["no error"] * 2
    zero = "Loss.count: at update 0 it is zero on all ranks together"
    assert run_ranks(2, error_of_count, 0, 1, config=config, tmp_path=tmp_path) == [zero] * 2
