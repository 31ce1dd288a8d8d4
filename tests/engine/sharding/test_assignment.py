"""Shards are assigned without gap or overlap, and the exact tree is the same on any assignment."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
import torch

from ranks import ShardItems, StepBatch, UserError
from ranks.engine.sharding.assignment import ShardAssignment, shard_items
from ranks.engine.update.sum_tree import Node, PartialSums, aligned_nodes, finish


@pytest.mark.parametrize("num_items", [0, 1, 5, 64, 1000])
@pytest.mark.parametrize("num_shards", [1, 3, 8, 64])
def test_shards_hold_each_item_once(num_items: int, num_shards: int) -> None:
    items = [i for s in range(num_shards) for i in shard_items(s, num_items, num_shards)]
    assert items == list(range(num_items))


def test_shares_are_proportions() -> None:
    assert ShardAssignment.make(8, 2, (5, 3)).bounds == (0, 5, 8)
    assert ShardAssignment.make(64, 2, (5, 3)).bounds == (0, 40, 64)
    assert ShardAssignment.make(8, 3).bounds == (0, 2, 5, 8)
    assert [list(ShardAssignment.make(8, 2, (5, 3)).items_of(r, 10)) for r in (0, 1)] == [
        [0, 1, 2, 3, 4, 5],
        [6, 7, 8, 9],
    ]


def test_more_ranks_than_shards_is_refused() -> None:
    with pytest.raises(UserError, match="9 ranks"):
        ShardAssignment.make(8, 9)
    with pytest.raises(UserError, match="--shares 1,2"):
        ShardAssignment.make(8, 3, (1, 2))


def all_bounds(num_shards: int) -> list[tuple[int, ...]]:
    """The bounds of every contiguous assignment of the shards to 1..S ranks."""
    inner = range(1, num_shards)
    cuts = [c for k in range(num_shards) for c in combinations(inner, k)]
    return [(0, *c, num_shards) for c in cuts]


@pytest.mark.parametrize("num_shards", [1, 2, 3, 5, 7, 8])
def test_every_contiguous_assignment_adds_up_to_the_same_bits(num_shards: int) -> None:
    generator = torch.Generator().manual_seed(num_shards)
    leaves = torch.randn(num_shards, 257, generator=generator) * 10.0 ** torch.randint(-6, 6, (num_shards, 257))
    results = set()
    for bounds in all_bounds(num_shards):
        values: dict[Node, torch.Tensor] = {}
        for first, last in pairwise(bounds):
            sums = PartialSums()
            for shard in range(first, last):
                sums.push(shard, leaves[shard])
            assert [node for node, _ in sums.nodes] == aligned_nodes(range(first, last))
            values.update(sums.nodes)
        results.add(finish(values, num_shards, torch.add).numpy().tobytes())
    assert len(all_bounds(num_shards)) == 2 ** (num_shards - 1)
    assert len(results) == 1


def test_adding_in_another_order_gives_other_bits() -> None:
    """The test above could not fail if the numbers were tame."""
    generator = torch.Generator().manual_seed(8)
    leaves = torch.randn(8, 257, generator=generator) * 10.0 ** torch.randint(-6, 6, (8, 257))
    tree = finish({Node(0, s): leaves[s] for s in range(8)}, 8, torch.add)
    assert not torch.equal(tree, sum(leaves[1:], leaves[0]))


def test_the_tree_of_five_shards_is_the_stated_one() -> None:
    words = {Node(0, s): str(s) for s in range(5)}
    assert finish(words, 5, lambda a, b: f"({a}+{b})") == "(((0+1)+(2+3))+4)"


def step_batch(sizes: list[int], cost: list[float] | None = None) -> StepBatch[torch.Tensor]:
    shards, first = [], 0
    for s, n in enumerate(sizes):
        ids = torch.arange(first, first + n)
        shards.append(ShardItems(s, ids, torch.tensor(cost[first : first + n], dtype=torch.float64) if cost else None))
        first += n
    return StepBatch(shards, lambda ids: ids)


def test_fast_mode_fuses_and_splits_shards_by_cost() -> None:
    batch = step_batch([3, 0, 2, 4], [1, 1, 5, 2, 2, 9, 1, 1, 1])
    assert batch.cost == 23
    assert [p.ids.tolist() for p in batch.split(None)] == [list(range(9))]
    assert [p.ids.tolist() for p in batch.split(6)] == [[0, 1], [2], [3, 4], [5], [6, 7, 8]]
    assert [p.ids.tolist() for p in batch.split(None, 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
    assert [p.shard for p in batch.split(6)] == [0, 0, 2, 3, 3]
    assert step_batch([0, 0]).split(3) == []


def test_exact_mode_never_crosses_a_shard() -> None:
    pieces = list(step_batch([3, 0, 2]).by_shard(2))
    assert [(p.shard, p.ids.tolist(), p.last) for p in pieces] == [
        (0, [0, 1], False),
        (0, [2], True),
        (1, [], True),
        (2, [3, 4], True),
    ]
