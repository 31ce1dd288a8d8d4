"""Random numbers are a function of their key, do not depend on which items are asked for, and are
uniform."""

from __future__ import annotations

import pytest
import torch

from ranks import rng

KEY = rng.key(7, "test", 3)
GOLDEN_KEY = -2361834380765919587
GOLDEN_BITS = [[4598471837433329284, -895158457246745316], [-2978583142254327056, 8316211150213123959]]


def test_golden_bits() -> None:
    """They never change: a run may be resumed by a later version."""
    assert rng.key(0, "order/train", 0) == GOLDEN_KEY
    assert rng.bits(GOLDEN_KEY, torch.tensor([0, 1]), 2).tolist() == GOLDEN_BITS


def test_the_numbers_of_an_item_do_not_depend_on_the_other_items() -> None:
    ids = torch.arange(100)
    every = rng.bits(KEY, ids, 3)
    assert torch.equal(rng.bits(KEY, ids[40:60], 3), every[40:60])
    assert torch.equal(rng.bits(KEY, ids, 2), every[:, :2])


def test_seed_purpose_and_step_all_matter() -> None:
    keys = {rng.key(s, p, t) for s in (0, 1) for p in ("a", "b") for t in (0, 1)}
    assert len(keys) == 8


def test_bits_are_balanced_and_uncorrelated_between_neighbours() -> None:
    bits_ND = rng.bits(KEY, torch.arange(20_000), 2)
    ones = torch.stack([(bits_ND >> b) & 1 for b in range(64)]).double().mean((1, 2))
    assert (ones - 0.5).abs().max() < 0.013  # five standard errors of 40,000 bits
    u = rng.uniform(KEY, torch.arange(20_001), 1)[:, 0] - 0.5
    assert abs(float((u[1:] * u[:-1]).mean() * 12)) < 0.04


def test_uniforms_and_integers_fill_their_range() -> None:
    u = rng.uniform(KEY, torch.arange(50_000), 1)
    assert 0.0 <= float(u.min()) < 1e-3 < 0.999 < float(u.max()) < 1.0
    counts = torch.bincount(rng.integers(KEY, torch.arange(60_000), 1, 6)[:, 0], minlength=6)
    assert len(counts) == 6
    assert (counts - 10_000).abs().max() < 500


def test_integers_refuse_a_range_they_cannot_draw_from() -> None:
    with pytest.raises(ValueError, match="high must lie"):
        rng.integers(KEY, torch.arange(2), 1, 2**31)


def test_normal_and_gumbel_have_their_moments() -> None:
    z = rng.normal(KEY, torch.arange(100_000), 1)
    assert (abs(float(z.mean())), float(z.std())) == (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.02))
    g = rng.gumbel(KEY, torch.arange(100_000), 1)
    assert float(g.mean()) == pytest.approx(0.5772, abs=0.03)
    assert torch.isfinite(g).all()


def test_permutations_hold_each_number_once_and_differ_by_key() -> None:
    first, second = rng.permutation(KEY, 1000), rng.permutation(KEY + 1, 1000)
    assert first.sort().values.tolist() == list(range(1000))
    assert first.tolist() != second.tolist()


def test_numpy_generators_are_keyed_by_item() -> None:
    a, b = (rng.numpy_generator(0, "graphs", 0, item).integers(0, 2**40, 4).tolist() for item in (1, 2))
    assert a == rng.numpy_generator(0, "graphs", 0, 1).integers(0, 2**40, 4).tolist()
    assert a != b
