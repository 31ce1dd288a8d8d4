"""Exact evaluation: every item once, whoever carries it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ranks.engine.loss import Loss
from ranks.engine.precision import autocast
from ranks.engine.world import World


@contextmanager
def acting(model: nn.Module) -> Generator[None]:
    """The model in evaluation mode without gradients, then as it was."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


def evaluate_by_shard(world: World, num_items: int, fn: Callable[[Tensor], Loss]) -> dict[str, float]:
    """Means of `fn`'s loss and metrics over `num_items` items.

    `fn` gets int64 item ids of one shard, never of two, so what it computes does not depend on the deal; the sums are
    merged in float64 in shard order. Every rank calls it and gets the same numbers. `fn` sets evaluation mode itself
    (`acting`).
    """
    start = time.perf_counter()
    mine: list[tuple[int, dict[str, tuple[float, float]]]] = []
    most = max(len(world.deal.shards_of(r)) for r in range(world.size))
    shards = world.shard_items(num_items)
    for turn in range(most):
        world.check_stop()
        if turn < len(shards) and len(shards[turn][1]):
            shard, items = shards[turn]
            with autocast(world.config, world.device):
                names, sums, counts = fn(torch.tensor(items)).parts()
            mine.append((shard, {n: (float(s), float(c)) for n, s, c in zip(names, sums, counts, strict=True)}))
    every = sorted((part for parts in world.comm.gather_objects(mine) for part in parts), key=lambda part: part[0])
    totals: dict[str, tuple[float, float]] = {}
    for _, part in every:
        for name, (total, count) in part.items():
            old = totals.get(name, (0.0, 0.0))
            totals[name] = (old[0] + total, old[1] + count)
    world.spent["evaluation"] += time.perf_counter() - start
    return {name: total / count if count else float("nan") for name, (total, count) in totals.items()}
