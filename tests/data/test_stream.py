"""The stream of global batches: which items a batch holds, and how their costs are balanced over
shards."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ranks.data.stream import balanced


def slices(cost: np.ndarray, order: list[int], parts: int) -> np.ndarray:
    bounds = [s * len(order) // parts for s in range(parts + 1)]
    return np.array([cost[order[a:b]].sum() for a, b in pairwise(bounds)])


@pytest.mark.parametrize(("num_items", "num_shards"), [(0, 4), (1, 8), (7, 8), (32, 64), (33, 8), (512, 64), (100, 7)])
def test_every_item_is_assigned_once(num_items: int, num_shards: int) -> None:
    cost = np.random.default_rng(num_items).lognormal(0, 2, num_items)
    assert sorted(balanced(cost.tolist(), num_shards)) == list(range(num_items))


def test_shards_and_ranks_get_equal_work() -> None:
    cost = np.random.default_rng(1).lognormal(0, 1, 512)
    order = balanced(cost.tolist(), 64)
    shards, mean = slices(cost, order, 64), cost.sum() / 64
    assert shards.max() < 1.1 * max(mean, cost.max())
    assert (
        np.median(np.abs(shards / mean - 1)) < 0.05 < np.median(np.abs(slices(cost, list(range(512)), 64) / mean - 1))
    )
    for ranks in (2, 3, 4, 8):
        work = slices(cost, order, ranks)
        assert work.max() / work.min() < 1.15


def test_with_more_shards_than_items_no_rank_gets_all_expensive_ones() -> None:
    cost = np.array([100.0] * 8 + [1.0] * 24)
    work = slices(cost, balanced(cost.tolist(), 64), 4)
    assert work.max() == work.min()


def test_equal_items_keep_a_fixed_order() -> None:
    assert balanced([1.0] * 16, 4) == balanced([1.0] * 16, 4)
