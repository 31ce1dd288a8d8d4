"""One update's items, by shard, as one rank carries them.

A batch is item ids and a way to gather them. So the engine can fuse shards, or split them, without knowing what an
item is: a sample, an environment, a position of a game.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

B = TypeVar("B")


@dataclass(frozen=True)
class ShardItems:
    """The items of one shard. `ids`: int64[N] on the CPU, N may be 0. `cost`: float64[N], or none where all cost 1."""

    shard: int
    ids: Tensor
    cost: Tensor | None = None


@dataclass(frozen=True)
class MicroBatch:
    """What one forward and backward pass takes. `shard`: the first shard it belongs to; `last`: it ends that shard."""

    shard: int
    ids: Tensor
    cost: float
    last: bool


@dataclass(frozen=True)
class StepBatch(Generic[B]):
    """`shards`: every shard this rank carries, in order, empty ones too. `gather`: item ids -> a batch on the device."""

    shards: tuple[ShardItems, ...]
    gather: Callable[[Tensor], B]

    @property
    def cost(self) -> float:
        """What this rank's items cost together: items, or nodes + edges, or frames."""
        return float(sum(_costs(s).sum() for s in self.shards))

    def by_shard(self, max_items: int | None) -> Iterator[MicroBatch]:
        """Micro-batches that never cross a shard; exactly one or more per shard, an empty one for an empty shard."""
        for s in self.shards:
            pieces = torch.split(s.ids, max_items) if max_items and len(s.ids) else (s.ids,)
            for i, ids in enumerate(pieces):
                yield MicroBatch(s.shard, ids, float(len(ids)), i + 1 == len(pieces))

    def split(self, max_cost: float | None, max_items: int | None = None) -> list[MicroBatch]:
        """All items of the rank, shards fused, in pieces of at most `max_cost` and `max_items` (an item at least)."""
        nonempty = [s for s in self.shards if len(s.ids)]
        if not nonempty:
            return []
        ids = torch.cat([s.ids for s in nonempty])
        shard_N = [s.shard for s in nonempty for _ in range(len(s.ids))]
        if max_cost is None and max_items is None:
            return [MicroBatch(shard_N[0], ids, self.cost, True)]
        cost_N = torch.cat([_costs(s) for s in nonempty]).tolist()
        starts = _starts(cost_N, max_cost, max_items)
        stops = [*starts[1:], len(cost_N)]
        return [
            MicroBatch(shard_N[a], ids[a:b], sum(cost_N[a:b]), b == len(cost_N))
            for a, b in zip(starts, stops, strict=True)
        ]


def _costs(shard: ShardItems) -> Tensor:
    return shard.cost if shard.cost is not None else torch.ones(len(shard.ids), dtype=torch.float64)


def _starts(costs: Sequence[float], max_cost: float | None, max_items: int | None) -> list[int]:
    """Greedy cuts: a piece starts where adding the item would pass a limit."""
    starts, total = [0], 0.0
    for i, cost in enumerate(costs):
        full = (max_cost is not None and total + cost > max_cost) or (max_items is not None and i - starts[-1] >= max_items)
        if full and i > starts[-1]:
            starts.append(i)
            total = 0.0
        total += cost
    return starts
