"""A data set as a stream of global batches. A batch is a function of the iteration, so a stream has
no state to save.

An epoch visits every item once, in an order keyed by (seed, purpose, epoch); its last batch may be
short. Where items differ in cost, the items of a batch are ordered so that all shards cost about
the same.

With workers, processes or threads gather batches before the rank needs them (`ranks.data.loading`).
The batches stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from heapq import heapify, heappop, heappush
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor

from ranks.data.dataset import Dataset, is_on_host
from ranks.data.loading.device_copy import DeviceCopy
from ranks.data.loading.prefetcher import Prefetcher, Source, gather_here
from ranks.data.loading.process_workers import ProcessWorkers
from ranks.data.loading.tasks import Workers
from ranks.data.loading.thread_workers import ThreadWorkers
from ranks.engine.distributed.world import World
from ranks.engine.sharding import rng
from ranks.engine.sharding.batch import Shards, StepBatch
from ranks.errors import UserError

T = TypeVar("T")
Kind = Literal["processes", "threads"]
MAX_WORKERS = 1024


class Stream(Generic[T]):
    """`at(iteration)`: this rank's part of that iteration's global batch."""

    def __init__(self, dataset: Dataset[T], global_batch: int, world: World, purpose: str, item: str) -> None:
        if len(dataset) == 0:
            raise UserError("to train", f"the {purpose} data set is empty", "give data with at least one item")
        if global_batch < 1:
            raise UserError(f"--global-batch {global_batch}", "a batch needs an item", "give --global-batch 1 or more")
        self.dataset, self.world, self.purpose, self.item = dataset, world, purpose, item
        self.global_batch = min(global_batch, len(dataset))
        self._order_of = lru_cache(maxsize=2)(self._order)  # reading ahead crosses from one epoch to the next
        self._source = Source(dataset, self.shards, self._key, purpose, item)
        self._on_host = is_on_host(dataset)
        self._to_device = DeviceCopy(world.device) if self._on_host else None
        self._prefetcher: Prefetcher[T] | None = None

    @property
    def iterations_per_epoch(self) -> int:
        return -(-len(self.dataset) // self.global_batch)

    def at(self, iteration: int) -> StepBatch[T]:
        """Shard s of the batch takes its items `[s*B//S, (s+1)*B//S)`. With workers it waits until they have
        gathered this rank's items."""
        if self._prefetcher is not None:
            return self._prefetcher.at(iteration)
        gather = partial(self._gather_on_host, iteration) if self._on_host else self.dataset.gather
        return StepBatch(self.shards(iteration), gather, self.item)

    def shards(self, iteration: int) -> Shards:
        """This rank's shards of that iteration."""
        epoch, position = divmod(iteration, self.iterations_per_epoch)
        batch = self._order_of(epoch)[position * self.global_batch : (position + 1) * self.global_batch]
        cost: Tensor | None = getattr(self.dataset, "cost", None)  # without it, all items cost the same
        if cost is not None:
            batch = batch[balanced(cost[batch].tolist(), self.world.assignment.num_shards)]
        return Shards.assigned(batch, self.world.assignment, self.world.rank, cost[batch] if cost is not None else None)

    def read_ahead(self, num_workers: int, prefetch: int, kind: Kind) -> None:
        """Let workers gather from now on. Raises UserError."""
        if not 0 <= num_workers <= MAX_WORKERS:
            found = f"a number of workers is 0 to {MAX_WORKERS:,}"
            raise UserError(f"workers={num_workers}", found, "give about as many as the rank has CPU cores")
        if prefetch < 1:
            raise UserError(f"prefetch={prefetch}", "each worker reads at least one batch", "give 1 or more")
        if num_workers == 0:
            return
        if kind == "threads" and getattr(self.dataset, "random", False):
            found = "its items draw from generators that all threads share, so a batch would depend on their order"
            raise UserError(f"threads for the {self.purpose} data set", found, "leave kind out, for processes")
        threads = torch.get_num_threads() if self.world.exact else 1
        workers: Workers = (
            ThreadWorkers(self.dataset, num_workers, purpose=self.purpose)
            if kind == "threads"
            else ProcessWorkers(self.dataset, num_workers, threads=threads, purpose=self.purpose)
        )
        self.world.at_leave(workers.close)
        self._prefetcher = Prefetcher(self._source, workers, self.world, num_workers * prefetch)

    def close(self) -> None:
        """End the workers. Otherwise they end with the stream, or with the process."""
        if self._prefetcher is not None:
            self._prefetcher.workers.close()

    def _order(self, epoch: int) -> Tensor:
        return rng.permutation(rng.key(self.world.seed, f"order/{self.purpose}", epoch), len(self.dataset))

    def _key(self, iteration: int) -> int:
        """Of the random numbers of the items: the same through an epoch."""
        return rng.key(self.world.seed, f"items/{self.purpose}", iteration // self.iterations_per_epoch)

    def _gather_on_host(self, iteration: int, ids: Tensor) -> Any:
        assert self._to_device is not None
        return self._to_device(gather_here(self._source, iteration, ids))


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
    dataset: Dataset[T],
    global_batch: int,
    world: World,
    purpose: str = "train",
    item: str = "samples",
    *,
    workers: int = 0,
    prefetch: int = 2,
    kind: Kind = "processes",
) -> Stream[T]:
    """The stream of a data set's global batches. `purpose`: keys the order. `item`: what
    metrics.jsonl counts.

    `workers`: processes of each rank that call `gather` in advance, for a `gather` that is slow and
    returns tensors on the CPU; 0 for none. `prefetch`: micro-batches that each of them reads ahead.
    `kind`: "threads" for a `gather` that does not hold Python's lock. Raises UserError.
    """
    made = Stream(dataset, global_batch, world, purpose, item)
    made.read_ahead(workers, prefetch, kind)
    return made
