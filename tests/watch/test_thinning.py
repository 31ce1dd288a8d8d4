"""Curves that are thinned: they keep their extremes and stay short."""

from __future__ import annotations

import pytest

from ranks.watch.thinning import MOST_BUCKETS, Extremes, Thinned


def test_thinned_curves_keep_spikes_and_stay_short() -> None:
    curve = Thinned[Extremes](Extremes.plus)
    for n in range(1, 30_001):
        curve.add(Extremes.of(n, {7_777: 50.0, 23_456: -50.0}.get(n, 1.0)), n)
    start, buckets = curve.since(0)
    assert start == 0
    assert MOST_BUCKETS / 2 <= len(buckets) <= MOST_BUCKETS
    assert (max(b.high for b in buckets), min(b.low for b in buckets)) == (50.0, -50.0)
    assert sum(b.rows for b in buckets) == 30_000
    assert sum(b.mean * b.rows for b in buckets) == pytest.approx(29_998)
    assert (buckets[0].first, buckets[-1].last) == (1, 30_000)
    assert len(curve.since(29_999)[1]) == 1
    assert curve.since(30_000) == (len(buckets), [])
    (spike,) = (b.point() for b in buckets if b.high > 1)
    assert spike[2:] == [1.0, 50.0]


def test_what_a_page_holds_of_a_curve_is_what_the_server_holds() -> None:
    """The page keeps `start` points and appends the others; at any moments of asking it has the whole curve."""
    curve = Thinned[Extremes](Extremes.plus, most=8)
    held: list[Extremes] = []
    asked_at = 0
    for n in range(1, 200):
        curve.add(Extremes.of(n, float(n % 13)), n)
        if n % 7 == 0 or n % 11 == 0:
            start, new = curve.since(asked_at)
            held, asked_at = [*held[:start], *new], n
            assert held == curve.since(0)[1]
