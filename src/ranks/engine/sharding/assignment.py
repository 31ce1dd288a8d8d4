"""Which rank carries which shards, and which items a shard holds."""

from __future__ import annotations

from dataclasses import dataclass

from ranks.errors import UserError


def shard_items(shard: int, num_items: int, num_shards: int) -> range:
    """The items of one shard: `[s*B//S, (s+1)*B//S)`; empty where there are fewer items than
    shards."""
    return range(shard * num_items // num_shards, (shard + 1) * num_items // num_shards)


@dataclass(frozen=True)
class ShardAssignment:
    """A contiguous range of shards for each rank: rank r carries shards
    `bounds[r]..bounds[r+1]-1`."""

    bounds: tuple[int, ...]

    @classmethod
    def make(cls, num_shards: int, num_ranks: int, shares: tuple[int, ...] | None = None) -> ShardAssignment:
        """Ranges of equal length, or in proportion to `shares`. Raises UserError."""
        if num_ranks > num_shards:
            raise UserError(
                f"{num_ranks} ranks",
                f"the run has {num_shards} shards",
                f"use at most {num_shards} ranks, or more --shards",
            )
        weights = shares if shares is not None else (1,) * num_ranks
        if len(weights) != num_ranks:
            raise UserError(
                f"--shares {','.join(map(str, weights))}",
                f"{num_ranks} ranks",
                "give one share per rank, or set --ranks",
            )
        total, done, bounds = sum(weights), 0, [0]
        for weight in weights:
            done += weight
            bounds.append(num_shards * done // total)
        return cls(tuple(bounds))

    @property
    def num_ranks(self) -> int:
        return len(self.bounds) - 1

    @property
    def num_shards(self) -> int:
        return self.bounds[-1]

    def shards_of(self, rank: int) -> range:
        return range(self.bounds[rank], self.bounds[rank + 1])

    def items_of(self, rank: int, num_items: int) -> range:
        """The items of `num_items` that a rank carries."""
        first, last = self.bounds[rank], self.bounds[rank + 1]
        return range(first * num_items // self.num_shards, last * num_items // self.num_shards)
