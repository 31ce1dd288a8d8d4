"""Shares for ranks of unequal speed and memory, worked out by hand."""

from __future__ import annotations

import pytest

from ranks.cli.scaling.balance import ItemLimits
from ranks.hardware.forecast.memory_need import MemoryNeed
from ranks.hardware.scale.shares import propose_shares, spread_of


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [
        ((5.0, 3.0), (5, 3)),
        ((1.0, 1.0, 1.0), (1, 1, 1)),
        ((100.2, 99.8), (1, 1)),
        ((2.0, 1.0, 1.0), (2, 1, 1)),
        ((1000.0, 1.0), (63, 1)),
    ],
)
def test_shares_follow_the_speeds(speeds: tuple[float, ...], expected: tuple[int, ...]) -> None:
    assert propose_shares(speeds) == expected


def test_shares_are_not_finer_than_the_measurement() -> None:
    assert spread_of([[50.0, 50.0], [50.0, 50.0]]) == 0.01
    assert spread_of([[55.0, 45.0], [100.0, 100.0]]) == pytest.approx(0.05)
    assert propose_shares((10.0, 11.0), tolerance=0.0) == (10, 11)
    assert propose_shares((10.0, 11.0), tolerance=0.05) == (1, 1)


def test_a_card_with_less_memory_gets_fewer_items() -> None:
    assert propose_shares((1.0, 1.0), (100, 24), num_items=96) == (3, 1)
    assert propose_shares((5.0, 3.0), (100, 100), num_items=96) == (5, 3), "the memory does not matter"
    assert propose_shares((1.0, 1.0), (40, 40), num_items=96) is None
    shares = propose_shares((1.0, 1.0, 1.0), (1000, 1000, 20), num_items=1000)
    assert shares is not None
    assert shares[2] == 1
    assert 1000 / sum(shares) <= 20
    assert propose_shares((1.0, 1.0), (100, 1), num_items=200) is None, "one share of 64 is more than one item"


GIB = 2**30
NEED = MemoryNeed(pass_items=1000, fixed_bytes=2 * GIB, bytes_per_item=GIB / 100)


def test_a_rank_carries_what_its_memory_holds() -> None:
    """0.9 of 10 GiB hold 2 GiB and 700 items; a batch has 2,000. 80 GiB hold all."""
    allowed = ItemLimits(need=NEED, global_batch=2000)
    assert allowed.of([80 * GIB, 10 * GIB, GIB], 2000) == (2000, 700, 0)
    assert allowed.of([80 * GIB, 10 * GIB], 200) == (200, 70), "an iteration of fewer items has the same shares"
    assert propose_shares((1.0, 1.0), allowed.of([80 * GIB, 10 * GIB], 2000), 2000) == (13, 7), "700 of 2,000"
    assert ItemLimits((5, 3), NEED, 2000).of([80 * GIB, GIB], 2000) == (5, 3), "what the user says holds"
    assert ItemLimits().of([80 * GIB], 2000) is None


def test_a_rank_whose_items_are_split_carries_any_number_of_them() -> None:
    for most_pass, expected in ((700, 2000), (701, 700)):
        allowed = ItemLimits(need=NEED, global_batch=2000, most_pass=most_pass)
        assert allowed.of([10 * GIB], 2000) == (expected,)
    flat = MemoryNeed(pass_items=1000, fixed_bytes=2 * GIB, bytes_per_item=0.0)
    assert [flat.share_that_fits(size * GIB, 2000) for size in (1, 3)] == [0.0, 1.0]
