"""Which micro-batches the learner will ask for: it cuts every batch in the same way until memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from ranks.engine.distributed.world import World
from ranks.engine.sharding.batch import MicroBatch, Shards, StepBatch

B = TypeVar("B")


@dataclass(frozen=True)
class Cut:
    """The arguments of `StepBatch.by_shard` or `StepBatch.split`."""

    by_shard: bool
    max_cost: float | None
    max_items: int | None

    @classmethod
    def first(cls, world: World) -> Cut:
        """What the learner does until memory runs out."""
        return cls(world.exact, None, world.config.micro_batch)

    def pieces(self, batch: StepBatch[B]) -> list[Tensor]:
        """The item ids of each micro-batch that has items."""
        found = (
            StepBatch.by_shard(batch, self.max_items)
            if self.by_shard
            else StepBatch.split(batch, self.max_cost, self.max_items)
        )
        return [piece.ids for piece in found if len(piece.ids)]


class ReadAheadBatch(StepBatch[B]):
    """A batch that says how it is cut, so that later ones can be cut alike before they are asked for."""

    noticed: Callable[[Cut], None]

    def __init__(
        self, shards: Shards, gather: Callable[[Tensor], B], item: str | None, noticed: Callable[[Cut], None]
    ) -> None:
        super().__init__(shards, gather, item)
        object.__setattr__(self, "noticed", noticed)

    def by_shard(self, max_items: int | None) -> list[MicroBatch]:
        self.noticed(Cut(True, None, max_items))
        return super().by_shard(max_items)

    def split(self, max_cost: float | None, max_items: int | None = None) -> list[MicroBatch]:
        self.noticed(Cut(False, max_cost, max_items))
        return super().split(max_cost, max_items)
