"""Out of memory is agreed on by all ranks, and the update is repeated in smaller micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ranks import GaveUp, Learner, Loss, RunConfig, UserError, World, stream
from tests.engine.group import another_world, run_ranks
from tests.engine.update.test_faults import BAD_ITEM, Line, data
from tests.engine.update.test_gradients import ITEMS, PLAIN, Net, Points, point_loss

LIMIT = 3


def hungry_loss(model: nn.Module, x_BF: Tensor) -> Loss:
    if len(x_BF) > LIMIT and bool((x_BF[:, 0] == 1000.0).any()):
        raise torch.OutOfMemoryError("a device that holds three items")
    return point_loss(model, x_BF)


def out_of_memory(world: World) -> dict[str, Any]:
    other = another_world(world, RunConfig(shards=8, precision="fp64"))
    points = Points(ITEMS, False)
    points.x_NF[BAD_ITEM, 0] = 1000.0
    batches = stream(points, ITEMS, other)
    learner = Learner(Net(), PLAIN, other)
    learner.step(hungry_loss, batches.at(0))
    gradient_is_late = learner.state_dict()["optimizer"]["step"].item() == 0.0
    learner.step(hungry_loss, batches.at(1))
    learner.drain()
    calm = Learner(Net(), PLAIN, other)
    for iteration in range(2):
        calm.step(point_loss, batches.at(iteration))
    calm.drain()
    gap = max(
        float((a - b).norm() / b.norm())
        for a, b in zip(learner.model.parameters(), calm.model.parameters(), strict=True)
    )
    return {"gap": gap, "late": gradient_is_late, "max_cost": learner.max_cost, "updates": learner.updates}


def test_out_of_memory_on_one_rank_is_retried_smaller_by_all(tmp_path: Path) -> None:
    results = run_ranks(2, out_of_memory, config=RunConfig(precision="fp64"), tmp_path=tmp_path)
    for r in results:
        assert r["late"], "the update must wait for the retry"
        assert r["gap"] < 1e-12
        assert r["max_cost"] is not None
        assert r["max_cost"] <= 4
        assert r["updates"] == 2
    assert results[0]["max_cost"] == results[1]["max_cost"]


def single_item_too_large(world: World) -> str:
    def never(model: nn.Module, x_BF: Tensor) -> Loss:
        if bool((x_BF[:, 0] == 1000.0).any()):
            raise torch.OutOfMemoryError("a device that holds nothing")
        return point_loss(model, x_BF)

    learner = Learner(Line(), PLAIN, world)
    learner.step(never, stream(data(), ITEMS, world).at(0))
    try:
        learner.drain()
    except GaveUp as error:
        return str(error)
    return "continued"


def test_an_item_that_never_fits_ends_the_run(tmp_path: Path) -> None:
    for text in run_ranks(2, single_item_too_large, config=RunConfig(shards=8), tmp_path=tmp_path):
        assert "a single item does not fit" in text


def no_rank_fits(world: World) -> dict[str, Any]:
    """Every rank runs out of memory in its first micro-batch, so at first no rank knows the
    metrics' names."""

    def loss(model: nn.Module, x_BF: Tensor) -> Loss:
        if len(x_BF) > LIMIT:
            raise torch.OutOfMemoryError("a device that holds three items")
        return point_loss(model, x_BF)

    other = another_world(world, RunConfig(shards=8, precision="fp64"))
    batches = stream(Points(ITEMS, False), ITEMS, other)
    learner, calm = Learner(Net(), PLAIN, other), Learner(Net(), PLAIN, other)
    learner.step(loss, batches.at(0))
    learner.drain()
    calm.step(point_loss, batches.at(0))
    calm.drain()
    timed = Learner(Net(), PLAIN, other)
    seconds = timed.time_step(loss, batches.at(0))
    weights = [p.detach() for p in learner.model.parameters()]
    gap = max(float((a - b).norm()) for a, b in zip(weights, calm.model.parameters(), strict=True))
    untouched = all(torch.equal(a, b) for a, b in zip(timed.model.parameters(), Net().parameters(), strict=True))
    return {"gap": gap, "seconds": seconds, "costs": (learner.max_cost, timed.max_cost), "untouched": untouched}


def test_out_of_memory_on_every_rank_at_the_first_update_and_in_the_dry_run(tmp_path: Path) -> None:
    for r in run_ranks(2, no_rank_fits, config=RunConfig(precision="fp64"), tmp_path=tmp_path):
        assert r["gap"] < 1e-12
        assert r["costs"] == (2.0, 2.0)
        assert r["seconds"] > 0
        assert r["untouched"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.join(RunConfig(threads=1, shards=8, runs_dir=tmp_path), device="cpu", workload="test")
    yield made
    made.leave()


class SmallMemory:
    """A loss whose device holds `sizes[i]` items in call i, then any number. `limits`: the learner's in each call."""

    def __init__(self, world: World, sizes: Sequence[int]) -> None:
        self.learner, self.limits, self.left = Learner(Line(), PLAIN, world), list[float | None](), list(sizes)

    def __call__(self, model: nn.Module, x_BF: Tensor) -> Loss:
        self.limits.append(self.learner.max_cost)
        if len(x_BF) > (self.left.pop(0) if self.left else 8):
            raise torch.OutOfMemoryError("a device that holds little")
        return point_loss(model, x_BF)


def test_a_limit_never_rises(world: World) -> None:
    """The second update runs out of memory while it waits for the retry of the first, and once more after it."""
    whole, whole_again, halves, quarters, again = [0], [0], [3], [2] * 4, [1]
    loss = SmallMemory(world, [*whole, *whole_again, *halves, *quarters, *again])
    batches = stream(data(), 8, world)
    for iteration in range(2):
        loss.learner.step(loss, batches.at(iteration))
    loss.learner.drain()
    assert loss.limits == [None, None, 4, 2, 2, 2, 2, 2, *[1] * 8]


def test_an_item_that_costs_much_and_fits_does_not_end_the_run(world: World) -> None:
    costed = data()
    costed.cost = torch.tensor([10.0] + [1.0] * (len(costed) - 1), dtype=torch.float64)

    def loss(model: nn.Module, x_BF: Tensor) -> Loss:
        if len(x_BF) > 2:
            raise torch.OutOfMemoryError("a device that holds two items")
        return point_loss(model, x_BF)

    learner = Learner(Line(), PLAIN, world)
    learner.step(loss, stream(costed, len(costed), world).at(0))
    learner.drain()
    assert learner.max_cost is not None
    assert 1 <= learner.max_cost < 3


@pytest.mark.parametrize("wrong", [0.0, float("nan")])
def test_items_that_cost_nothing_and_do_not_fit_are_bad_input(world: World, wrong: float) -> None:
    """No limit splits them, so each retry would be the same."""
    costed = data()
    costed.cost = torch.full((len(costed),), wrong, dtype=torch.float64)
    loss = SmallMemory(world, [2] * 1000)
    loss.learner.step(loss, stream(costed, len(costed), world).at(0))
    with pytest.raises(UserError, match="give each item a cost above zero"):
        loss.learner.drain()


def test_a_batch_that_is_too_large_to_gather_is_split(world: World) -> None:
    points = data()
    gather = points.gather

    def gather_few(ids: Tensor) -> Tensor:
        if len(ids) > 2:
            raise torch.OutOfMemoryError("a device that holds two items")
        return gather(ids)

    points.gather = gather_few
    learner = Learner(Line(), PLAIN, world)
    learner.step(point_loss, stream(points, 8, world).at(0))
    learner.drain()
    assert learner.max_cost == 2
