"""Evaluation over all ranks: every item exactly once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ranks.engine.distributed.precision import autocast
from ranks.engine.distributed.world import World
from ranks.engine.sharding.assignment import shard_items
from ranks.engine.update.loss import Loss


class HasEvalMode(Protocol):
    """A module with training and evaluation mode."""

    def eval(self) -> Any: ...
    def modules(self) -> Iterator[nn.Module]: ...


@contextmanager
def eval_mode(model: HasEvalMode, world: World | None = None) -> Generator[None]:
    """Evaluation mode without gradients, in the run's precision where `world` is given. Restores
    the mode of each submodule afterwards, so that a frozen one stays frozen."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad(), autocast(world.config, world.device) if world is not None else nullcontext():
            yield
    finally:
        for module, training in modes:
            module.training = training


def evaluate_by_shard(
    world: World, num_items: int, fn: Callable[[Tensor], Loss], max_items: int = 256
) -> dict[str, float]:
    """Means of `fn`'s loss and metrics over `num_items` items, each of which is evaluated once.

    `fn` gets int64 item ids; the caller sets evaluation mode (`eval_mode`). Under --exact a call
    gets the items of one shard, so the results are the same bits on any assignment. In fast mode it
    gets at most `max_items` of the rank's items. Sums are merged in float64 in item order. Every
    rank calls it and gets the same numbers.
    """
    with world.session.timed("evaluation"):
        return _evaluate(world, num_items, fn, max_items)


def _evaluate(world: World, num_items: int, fn: Callable[[Tensor], Loss], max_items: int) -> dict[str, float]:
    mine: list[tuple[int, list[str]]] = []
    found: list[Tensor] = []
    pieces = _pieces(world, num_items, max_items)
    most = max(len(p) for p in pieces)
    for index in range(most):
        world.check_stop()
        world.session.progress("evaluation", index, most)
        if index < len(pieces[world.rank]):
            items = pieces[world.rank][index]
            with autocast(world.config, world.device):
                names, sums, counts = fn(torch.tensor(items)).parts()
            mine.append((items.start, names))
            found += [_in_float64(sums, sums[0]), _in_float64(counts, sums[0])]
    numbers = iter(torch.cat(found).tolist() if found else [])  # waits for the device once
    read = [(first, names, _take(numbers, len(names)), _take(numbers, len(names))) for first, names in mine]
    totals: dict[str, tuple[float, float]] = {}
    for _, names, sums, counts in sorted(part for parts in world.comm.gather_objects(read) for part in parts):
        for name, total, count in zip(names, sums, counts, strict=True):
            old = totals.get(name, (0.0, 0.0))
            totals[name] = (old[0] + total, old[1] + count)
    return {name: total / count if count else float("nan") for name, (total, count) in totals.items()}


def _in_float64(numbers: Sequence[Tensor | int], like: Tensor) -> Tensor:
    """One float64 tensor of them, on the device of `like`."""
    rows = [n if isinstance(n, Tensor) else like.new_full((), n, dtype=torch.float64) for n in numbers]
    return torch.stack([row.double() for row in rows])


def _take(numbers: Iterator[float], count: int) -> list[float]:
    return list(islice(numbers, count))


def _pieces(world: World, num_items: int, max_items: int) -> list[list[range]]:
    """For each rank, the non-empty ranges of items of its calls of `fn`."""
    if world.exact:
        shards = [shard_items(s, num_items, world.shards) for s in range(world.shards)]
        return [[shards[s] for s in world.assignment.shards_of(r) if len(shards[s])] for r in range(world.size)]
    mine = [world.assignment.items_of(r, num_items) for r in range(world.size)]
    return [[items[i : i + max_items] for i in range(0, len(items), max_items)] for items in mine]
