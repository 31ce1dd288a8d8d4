"""A data set as a stream of global batches. A batch is a function of the iteration, so a stream has
no state to save.

An epoch visits every item once, in an order keyed by (seed, purpose, epoch); its last batch may be
short. Where items differ in cost, the items of a batch are ordered so that all shards cost about
the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from ranks.engine.distributed.world import World
from ranks.engine.sharding import rng
from ranks.engine.sharding.batch import Shards, StepBatch
from ranks.errors import UserError

B = TypeVar("B", covariant=True)
T = TypeVar("T")


class Dataset(Protocol[B]):
    """A map-style data set. `gather`: int64[N] item ids -> a batch on the rank's device. `cost`:
    float64[len], above zero, or None where every item costs 1. `sha256`: of the data, for the run's
    identity."""

    @property
    def cost(self) -> Tensor | None: ...
    @property
    def sha256(self) -> str: ...
    def __len__(self) -> int: ...
    def gather(self, ids: Tensor) -> B: ...


class Stream(Generic[T]):
    """`at(iteration)`: this rank's part of that iteration's global batch."""

    def __init__(self, dataset: Dataset[T], global_batch: int, world: World, purpose: str, item: str) -> None:
        if len(dataset) == 0:
            raise UserError("to train", f"the {purpose} data set is empty", "give data with at least one item")
        if global_batch < 1:
            raise UserError(f"--global-batch {global_batch}", "a batch needs an item", "give --global-batch 1 or more")
        self.dataset, self.world, self.purpose, self.item = dataset, world, purpose, item
        self.global_batch = min(global_batch, len(dataset))
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64)

    @property
    def iterations_per_epoch(self) -> int:
        return -(-len(self.dataset) // self.global_batch)

    def at(self, iteration: int) -> StepBatch[T]:
        """Shard s of the batch takes its items `[s*B//S, (s+1)*B//S)`."""
        epoch, position = divmod(iteration, self.iterations_per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = rng.permutation(rng.key(self.world.seed, f"order/{self.purpose}", epoch), len(self.dataset))
        batch = self._order[position * self.global_batch : (position + 1) * self.global_batch]
        cost: Tensor | None = getattr(self.dataset, "cost", None)  # without it, all items cost the same
        if cost is not None:
            batch = batch[balanced(cost[batch].tolist(), self.world.assignment.num_shards)]
        shards = Shards.assigned(
            batch, self.world.assignment, self.world.rank, cost[batch] if cost is not None else None
        )
        return StepBatch(shards, self.dataset.gather, self.item)


def balanced(cost_B: Sequence[float], num_shards: int) -> list[int]:
    """An order of B items in which the shards' slices cost about the same.

    Items are assigned from the most to the least expensive, each to the cheapest shard that has
    room (Graham 1969, "Bounds on multiprocessing timing anomalies"). Of equally cheap shards the
    first in bit-reversed order is taken, so that ranges of neighbouring shards, which a rank
    carries, cost about the same too.
    """
    bounds = [s * len(cost_B) // num_shards for s in range(num_shards + 1)]
    bits = max(1, (num_shards - 1).bit_length())
    heap = [
        (0.0, int(f"{s:0{bits}b}"[::-1], 2), s, bounds[s])  # cost so far, order, shard, next free place
        for s in range(num_shards)
        if bounds[s] < bounds[s + 1]
    ]
    heapify(heap)
    order = [0] * len(cost_B)
    for item in sorted(range(len(cost_B)), key=lambda i: -cost_B[i]):
        cost, priority, shard, place = heappop(heap)
        order[place] = item
        if place + 1 < bounds[shard + 1]:
            heappush(heap, (cost + cost_B[item], priority, shard, place + 1))
    return order


def stream(
    dataset: Dataset[T], global_batch: int, world: World, purpose: str = "train", item: str = "samples"
) -> Stream[T]:
    """The stream of a data set's global batches. `purpose`: keys the order. `item`: what
    metrics.jsonl counts."""
    return Stream(dataset, global_batch, world, purpose, item)
