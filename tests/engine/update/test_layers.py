"""Layers with a state or random numbers of their own: BatchNorm's statistics and dropout's masks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ranks import Learner, Loss, RunConfig, UserError, World, stream
from tests.engine.group import another_world, run_ranks
from tests.engine.update.test_faults import BAD_ITEM, Line, data
from tests.engine.update.test_gradients import ITEMS, PLAIN, point_loss


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
