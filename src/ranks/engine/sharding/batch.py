"""The items of one update that a rank carries, by shard.

A batch is item ids and a function that gathers them. So the engine can fuse or split shards without
knowing what an item is: a sample, an environment, a position of a game.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Generic, TypeVar, overload

import torch
from torch import Tensor

from ranks.engine.sharding.assignment import ShardAssignment

B = TypeVar("B")


@dataclass(frozen=True)
class ShardItems:
    """The items of one shard. `ids`: int64[N] on the CPU, N may be 0. `cost`: float64[N], or none
    where all cost 1."""

    shard: int
    ids: Tensor
    cost: Tensor | None = None


@dataclass(frozen=True)
class MicroBatch:
    """The items of one forward and backward pass. It begins at item `offset` of shard `shard`;
    `last`: it ends that shard."""

    shard: int
    offset: int
    ids: Tensor
    cost: float
    last: bool


@dataclass(frozen=True)
class Shards(Sequence[ShardItems]):
    """The shards of one rank as ranges of one tensor: shard `numbers[i]` holds
    `ids[starts[i]:starts[i + 1]]`.

    Indexing cuts a shard out. Fused passes use `ids` directly.
    """

    numbers: Sequence[int]
    starts: Sequence[int]
    ids: Tensor
    cost: Tensor | None

    @classmethod
    def of(cls, shards: Sequence[ShardItems]) -> Shards:
        """From single shards."""
        if isinstance(shards, Shards):
            return shards
        starts = list(accumulate((len(s.ids) for s in shards), initial=0))
        ids = torch.cat([s.ids for s in shards]) if shards else torch.empty(0, dtype=torch.int64)
        costed = any(s.cost is not None for s in shards)
        cost = torch.cat([_costs(s.ids, s.cost) for s in shards]) if costed else None
        return cls([s.shard for s in shards], starts, ids, cost)

    @classmethod
    def assigned(cls, ids: Tensor, assignment: ShardAssignment, rank: int, cost: Tensor | None = None) -> Shards:
        """The part of a global batch that is assigned to a rank. `ids` int64[B] and `cost`
        float64[B]: of the whole batch."""
        shards, part, starts = _part(assignment, rank, len(ids))
        if part.stop - part.start < len(ids):  # a rank alone carries all of them
            ids, cost = ids[part], cost[part] if cost is not None else None
        return cls(shards, starts, ids, cost)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> ShardItems: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ShardItems]: ...
    def __getitem__(self, index: int | slice) -> ShardItems | Sequence[ShardItems]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = self.numbers[index]
        first = index % len(self)
        part = slice(self.starts[first], self.starts[first + 1])
        return ShardItems(number, self.ids[part], self.cost[part] if self.cost is not None else None)

    def place_of(self, position: int) -> tuple[int, int]:
        """The shard that holds item `position` of `ids`, and the index of the item in that
        shard."""
        index = bisect_right(self.starts, position) - 1
        return self.numbers[index], position - self.starts[index]


@dataclass(frozen=True, init=False)
class StepBatch(Generic[B]):
    """This rank's part of one global batch.

    `shards`: all that this rank carries, in order, empty ones too. `gather`: item ids -> a batch on
    the device. `item`: what the items are called in metrics.jsonl (time/samples_per_second); None
    where something else counts them.
    """

    shards: Shards
    gather: Callable[[Tensor], B]
    item: str | None

    def __init__(
        self, shards: Sequence[ShardItems], gather: Callable[[Tensor], B], item: str | None = "samples"
    ) -> None:
        object.__setattr__(self, "shards", Shards.of(shards))
        object.__setattr__(self, "gather", gather)
        object.__setattr__(self, "item", item)

    @property
    def num_items(self) -> int:
        """Items that this rank carries."""
        return self.shards.ids.numel()

    @property
    def cost(self) -> float:
        """What this rank's items cost together: items, or the work of graphs."""
        return float(self.shards.cost.sum()) if self.shards.cost is not None else float(self.num_items)

    def by_shard(self, max_items: int | None) -> list[MicroBatch]:
        """Micro-batches that never cross a shard; one or more per shard, an empty one for an empty
        shard."""
        out: list[MicroBatch] = []
        for s in self.shards:
            step = max_items or max(1, len(s.ids))
            for offset in range(0, max(1, len(s.ids)), step):
                ids = s.ids[offset : offset + step]
                out.append(MicroBatch(s.shard, offset, ids, float(len(ids)), offset + step >= len(s.ids)))
        return out

    def split(self, max_cost: float | None, max_items: int | None = None) -> list[MicroBatch]:
        """All items of the rank, shards fused, in pieces of at most `max_cost` and `max_items` (an
        item at least)."""
        shards, ids = self.shards, self.shards.ids
        if self.num_items == 0:
            return []
        if max_cost is None and max_items is None:
            return [MicroBatch(*shards.place_of(0), ids, self.cost, True)]
        cost_N = _costs(ids, shards.cost).tolist()
        starts = _starts(cost_N, max_cost, max_items)
        stops = [*starts[1:], len(cost_N)]
        return [
            MicroBatch(*shards.place_of(a), ids[a:b], sum(cost_N[a:b]), b == len(cost_N))
            for a, b in zip(starts, stops, strict=True)
        ]


def _costs(ids: Tensor, cost: Tensor | None) -> Tensor:
    return cost if cost is not None else torch.ones(len(ids), dtype=torch.float64)


@lru_cache(maxsize=64)
def _part(assignment: ShardAssignment, rank: int, num_items: int) -> tuple[range, slice, list[int]]:
    """A rank's shards, its part of the items, and where in that part each shard begins (and the
    last one ends)."""
    shards = assignment.shards_of(rank)
    bounds = [s * num_items // assignment.num_shards for s in range(shards.start, shards.stop + 1)]
    return shards, slice(bounds[0], bounds[-1]), [b - bounds[0] for b in bounds]


def _starts(costs: Sequence[float], max_cost: float | None, max_items: int | None) -> list[int]:
    """Greedy cuts: a piece starts where adding the item would pass a limit."""
    starts, total = [0], 0.0
    for i, cost in enumerate(costs):
        full = (max_cost is not None and total + cost > max_cost) or (
            max_items is not None and i - starts[-1] >= max_items
        )
        if full and i > starts[-1]:
            starts.append(i)
            total = 0.0
        total += cost
    return starts
