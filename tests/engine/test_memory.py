"""Out of memory is agreed on by all ranks, and the update is repeated in smaller micro-batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ranks import GaveUp, Learner, Loss, RunConfig, World, stream
from tests.engine.group import another_world, run_ranks
from tests.engine.test_faults import BAD_ITEM, ITEMS, Line, data
from tests.engine.test_gradients import PLAIN, Net, Points, point_loss

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
