"""Faults of one rank are handled by all ranks in the same way: non-finite numbers, buffers that
change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ranks import GaveUp, Learner, Loss, OptimConfig, Run, RunConfig, UserError, World, stream
from tests.engine.group import another_world, run_ranks
from tests.engine.test_gradients import PLAIN, Net, Points, gradient_of, point_loss

BAD_ITEM = 3
ITEMS = 16


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
        assert "do: lower the learning rate (--optim.lr, now 0.01), or check the data of these items" in text


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


class Normed(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(5, 3), nn.BatchNorm1d(3)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BF: Tensor) -> Tensor:
        return self.dropout(self.norm(self.linear(x_BF)))


def running_mean(learner: Learner) -> Tensor:
    assert isinstance(learner.model, Normed)
    assert learner.model.norm.running_mean is not None
    return learner.model.norm.running_mean


def moving_buffers(world: World, exact: bool) -> Any:
    other = another_world(world, RunConfig(shards=8, exact=exact))
    torch.manual_seed(0)
    learner = Learner(Normed(0.0), PLAIN, other)
    try:
        learner.step(point_loss, stream(data(), ITEMS, other).at(0))
        learner.drain()
    except UserError as error:
        return error.do
    return running_mean(learner).tolist()


def test_buffers_that_a_forward_changes_are_refused_under_exact_and_averaged_otherwise(tmp_path: Path) -> None:
    config = RunConfig(shards=8)
    assert run_ranks(2, moving_buffers, True, config=config, tmp_path=tmp_path) == ["use GroupNorm or LayerNorm"] * 2
    first, second = run_ranks(2, moving_buffers, False, config=config, tmp_path=tmp_path)
    assert first == second


class Dropped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 64)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x_BF: Tensor) -> Tensor:
        return self.dropout(self.linear(x_BF))


def with_dropout(world: World) -> list[float]:
    other = another_world(world, RunConfig(shards=8, exact=True))
    torch.manual_seed(0)
    learner = Learner(Dropped(), PLAIN, other)
    assert isinstance(learner.model, Dropped)
    for iteration in range(3):
        learner.step(point_loss, stream(data(), ITEMS, other).at(iteration))
    learner.drain()
    return learner.model.linear.bias.tolist()


def test_dropout_keeps_the_bits_on_any_assignment(tmp_path: Path) -> None:
    config = RunConfig(shards=8, exact=True)
    alone = run_ranks(1, with_dropout, config=config, tmp_path=tmp_path)[0]
    assert run_ranks(3, with_dropout, config=config, tmp_path=tmp_path) == [alone] * 3
    assert len(set(alone)) > 8


def clipped(world: World) -> float:
    other = another_world(world, RunConfig(shards=4, precision="fp64"))
    config = OptimConfig(lr=1e-2, clip_norm=0.5, schedule="constant")
    learner = Learner(Net(), config, other)
    learner.step(point_loss, stream(Points(ITEMS, False), ITEMS, other).at(0))
    learner.drain()
    return float(torch.cat([g.flatten() for g in gradient_of(learner).values()]).norm())


def test_the_global_norm_is_clipped(tmp_path: Path) -> None:
    assert run_ranks(2, clipped, config=RunConfig(precision="fp64"), tmp_path=tmp_path) == pytest.approx(
        [0.5, 0.5], abs=1e-6
    )


def warnings_of_dropout(world: World, model_name: str) -> list[str]:
    events: list[dict[str, Any]] = []
    other = another_world(world, RunConfig(shards=8))
    other.session.emit = events.append
    learner = Learner({"Dropped": Dropped, "Line": Line}[model_name](), PLAIN, other)
    learner.step(point_loss, stream(data(), ITEMS, other).at(0))
    learner.drain()
    return [e["text"] for e in events if "draws random numbers" in e.get("text", "")]


def test_dropout_in_fast_mode_is_warned_of(tmp_path: Path) -> None:
    assert len(run_ranks(1, warnings_of_dropout, "Dropped", config=RunConfig(shards=8), tmp_path=tmp_path)[0]) == 1
    assert run_ranks(1, warnings_of_dropout, "Line", config=RunConfig(shards=8), tmp_path=tmp_path) == [[]]


def norms_after_a_skipped_update(world: World) -> dict[str, Any]:
    """A NaN in the data on one rank: the update is skipped, and BatchNorm's statistics with it."""
    other = another_world(world, RunConfig(shards=8))
    torch.manual_seed(0)
    points = data()
    learner = Learner(Normed(0.0), PLAIN, other)
    batches = stream(points, ITEMS, other)
    learner.step(point_loss, batches.at(0))
    learner.drain()
    before = running_mean(learner).clone()
    points.x_NF[BAD_ITEM] = float("nan")
    skipped = learner.step(point_loss, batches.at(1))
    learner.drain()
    return {"skipped": skipped.read().skipped, "kept": torch.equal(before, running_mean(learner))}


def test_a_skipped_update_leaves_moving_buffers_as_they_were(tmp_path: Path) -> None:
    for r in run_ranks(2, norms_after_a_skipped_update, config=RunConfig(shards=8), tmp_path=tmp_path):
        assert r == {"skipped": True, "kept": True}


class Strided(nn.Module):
    """A weight that is the transpose of a contiguous tensor."""

    def __init__(self, transposed: bool) -> None:
        super().__init__()
        weight = torch.arange(15.0, dtype=torch.float64).reshape(5, 3) / 10
        self.weight = nn.Parameter(weight.t().contiguous().t() if transposed else weight)

    def forward(self, x_BF: Tensor) -> Tensor:
        return x_BF @ self.weight


def with_strides(world: World) -> tuple[bool, float]:
    other = another_world(world, RunConfig(shards=8, precision="fp64"))
    batches = stream(Points(ITEMS, False), ITEMS, other)
    models = [Strided(transposed) for transposed in (True, False)]
    learners = [Learner(model, PLAIN, other) for model in models]
    for iteration in range(3):
        for learner in learners:
            learner.step(point_loss, batches.at(iteration))
            learner.model.zero_grad()
    for learner in learners:
        learner.drain()
    strided, plain = (model.weight.detach() for model in models)
    return strided.is_contiguous(), float((strided - plain).norm() / plain.norm())


def test_strides_and_a_zero_grad_change_nothing(tmp_path: Path) -> None:
    contiguous, gap = run_ranks(1, with_strides, config=RunConfig(precision="fp64"), tmp_path=tmp_path)[0]
    assert not contiguous
    assert gap < 1e-12


def masks_by_micro_batch(world: World) -> list[list[float]]:
    """Which dropout masks two items of one shard get, each in a separate micro-batch."""
    other = another_world(world, RunConfig(shards=1, exact=True, micro_batch=1))
    seen: list[list[float]] = []

    def loss(model: nn.Module, x_BF: Tensor) -> Loss:
        seen.append(nn.functional.dropout(torch.ones(64), 0.5).tolist())
        return point_loss(model, x_BF)

    learner = Learner(Line(), PLAIN, other)
    points = data()
    learner.step(loss, stream(points, 2, other).at(0))
    learner.drain()
    return seen


def test_micro_batches_of_a_shard_draw_different_dropout_masks(tmp_path: Path) -> None:
    config = RunConfig(shards=1, exact=True, micro_batch=1)
    first, second = run_ranks(1, masks_by_micro_batch, config=config, tmp_path=tmp_path)[0]
    assert first != second


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
        assert "do: lower the learning rate" in text


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
