"""Distributions against torch.distributions, and what is drawn from them against what it should be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch import distributions as theirs

from ranks import rng
from ranks.rl.distributions import Bernoullis, Categorical, DiagonalGaussian, Distribution, MultiCategorical

S = 40_000
"""Samples of each state."""


def luck(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def uniforms(num: int, states: int = S) -> Tensor:
    return rng.uniform(rng.key(5, "sample", 0), torch.arange(states), num)


def chi_square(counts: Tensor, expected: Tensor) -> float:
    """By how many standard deviations the statistic exceeds its mean, about."""
    freedom = counts.numel() - 1
    statistic = float(((counts - expected).square() / expected).sum())
    return (statistic - freedom) / math.sqrt(2 * freedom)


@dataclass(frozen=True)
class Pair:
    ours: Distribution
    theirs: theirs.Distribution
    mode: Tensor


def pair(kind: str) -> Pair:
    logits = luck(6, 5)
    if kind == "categorical":
        return Pair(Categorical.from_logits(logits), theirs.Categorical(logits=logits), logits.argmax(-1))
    if kind == "gaussian":
        mean, log_std = luck(6, 3), luck(3, seed=2)
        normal = theirs.Independent(theirs.Normal(mean, log_std.exp()), 1)
        return Pair(DiagonalGaussian.from_log_std(mean, log_std), normal, mean)
    bits = theirs.Independent(theirs.Bernoulli(logits=logits), 1)
    return Pair(Bernoullis(logits), bits, (logits > 0).double())


@pytest.mark.parametrize("kind", ["categorical", "gaussian", "bernoullis"])
def test_as_torch_has_it(kind: str) -> None:
    each = pair(kind)
    for action in (each.mode, each.ours.sample(uniforms(each.ours.num_draws, 6))):
        torch.testing.assert_close(each.ours.log_prob(action), each.theirs.log_prob(action))
    torch.testing.assert_close(each.ours.entropy(), each.theirs.entropy())
    assert torch.equal(each.ours.mode(), each.mode)


def test_several_choices_are_as_many_categoricals() -> None:
    logits, sizes = luck(6, 9), (2, 4, 3)
    ours = MultiCategorical.of(logits, sizes)
    parts = [theirs.Categorical(logits=part) for part in logits.split(sizes, -1)]
    action = ours.sample(uniforms(ours.num_draws, 6))
    assert action.shape == (6, 3)
    torch.testing.assert_close(ours.log_prob(action), sum(p.log_prob(action[:, i]) for i, p in enumerate(parts)))
    torch.testing.assert_close(ours.entropy(), sum(p.entropy() for p in parts))
    assert torch.equal(ours.mode(), torch.stack([p.logits.argmax(-1) for p in parts], -1))


@pytest.mark.parametrize("kind", ["categorical", "multi", "gaussian", "bernoullis"])
def test_gradients_reach_what_the_net_says(kind: str) -> None:
    said = luck(4, 6).requires_grad_()
    made: dict[str, Distribution] = {
        "categorical": Categorical.from_logits(said),
        "multi": MultiCategorical.of(said, (2, 4)),
        "gaussian": DiagonalGaussian.from_log_std(said, said[0]),
        "bernoullis": Bernoullis(said),
    }
    action = made[kind].sample(uniforms(made[kind].num_draws, 4)).detach()
    (gradient,) = torch.autograd.grad((made[kind].log_prob(action) + made[kind].entropy()).sum(), said)
    assert (gradient != 0).all()


def test_choices_come_as_often_as_they_should() -> None:
    ours = MultiCategorical.of(luck(9).expand(S, 9), (2, 4, 3))
    action_SA = ours.sample(uniforms(ours.num_draws))
    for i, part in enumerate(ours.parts):
        expected_K = S * part.log_prob_K[0].exp()
        assert abs(chi_square(action_SA[:, i].bincount(minlength=len(expected_K)).double(), expected_K)) < 4
        assert chi_square(action_SA[:, i].bincount(minlength=len(expected_K)).double(), expected_K.roll(1)) > 100
    pairs = (action_SA[:, 0] * 4 + action_SA[:, 1]).bincount(minlength=8).double()
    both = torch.outer(ours.parts[0].log_prob_K[0].exp(), ours.parts[1].log_prob_K[0].exp()).flatten()
    assert abs(chi_square(pairs, S * both)) < 4, "the parts are not independent"


def test_an_impossible_choice_is_never_drawn_and_leaves_the_entropy_finite() -> None:
    logits_K = torch.tensor([0.0, -math.inf, 1.0], requires_grad=True)
    ours = Categorical.from_logits(logits_K.expand(1000, 3))
    assert set(ours.sample(uniforms(3, 1000)).tolist()) == {0, 2}
    torch.testing.assert_close(ours.entropy()[0], theirs.Categorical(logits=torch.tensor([0.0, 1.0])).entropy())
    ours.entropy().sum().backward()
    assert logits_K.grad is not None
    assert torch.isfinite(logits_K.grad).all()


def test_numbers_have_the_normal_distribution() -> None:
    """Kolmogorov & Smirnov's distance, and that two numbers of one action have nothing to do with one another."""
    mean_A, log_std_A = torch.tensor([3.0, -1.0]).double(), torch.tensor([-2.0, 0.5]).double()
    ours = DiagonalGaussian.from_log_std(mean_A.expand(S, 2), log_std_A)
    z_SA = (ours.sample(uniforms(4)) - mean_A) / log_std_A.exp()
    below = theirs.Normal(0.0, 1.0).cdf(z_SA.sort(0).values)
    steps = torch.arange(1, S + 1, dtype=torch.float64)[:, None] / S
    assert float((below - steps).abs().max()) * math.sqrt(S) < 1.63  # 99 of 100 are
    assert abs(float(torch.corrcoef(z_SA.T)[0, 1])) < 4 / math.sqrt(S)


def test_bits_come_as_often_as_they_should() -> None:
    logits_A = torch.tensor([-2.0, 0.0, 1.0]).double()
    share_A = Bernoullis(logits_A.expand(S, 3)).sample(uniforms(3)).mean(0)
    deviation_A = (logits_A.sigmoid() * (-logits_A).sigmoid() / S).sqrt()
    assert ((share_A - logits_A.sigmoid()).abs() < 4 * deviation_A).all()


@pytest.mark.parametrize("kind", ["categorical", "gaussian", "bernoullis"])
def test_a_sample_depends_on_its_own_uniforms_alone(kind: str) -> None:
    ours = pair(kind).ours
    uniform = uniforms(ours.num_draws, 6)
    action = ours.sample(uniform)
    torch.manual_seed(99)
    assert torch.equal(ours.sample(uniform), action)
    other = uniform.clone()
    other[1:] = uniforms(ours.num_draws, 12)[7:]
    assert torch.equal(ours.sample(other)[0], action[0])
    assert not torch.equal(ours.sample(other)[1:], action[1:])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_a_net_says_in_half_precision_is_widened(dtype: torch.dtype) -> None:
    logits = luck(6, 5).to(dtype)
    for ours in (
        Categorical.from_logits(logits),
        MultiCategorical.of(logits, (2, 3)),
        DiagonalGaussian.from_log_std(logits, torch.zeros(5, dtype=dtype)),
    ):
        action = ours.sample(uniforms(ours.num_draws, 6))
        assert ours.log_prob(action).dtype == ours.entropy().dtype == torch.float32
    torch.testing.assert_close(Categorical.from_logits(logits).log_prob_K, logits.float().log_softmax(-1))
