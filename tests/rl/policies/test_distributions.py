"""Distributions: equal to torch.distributions; samples have the right frequencies."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch import distributions as theirs

from ranks import rng
from ranks.rl.policies.distributions import Bernoulli, Categorical, DiagonalGaussian, Distribution, MultiCategorical

S = 40_000
"""The number of samples."""


def randn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def uniforms(num: int, states: int = S) -> Tensor:
    return rng.uniform(rng.key(5, "sample", 0), torch.arange(states), num)


def chi_square(counts: Tensor, expected: Tensor) -> float:
    """By how many standard deviations the chi-square statistic exceeds its mean, about."""
    freedom = counts.numel() - 1
    statistic = float(((counts - expected).square() / expected).sum())
    return (statistic - freedom) / math.sqrt(2 * freedom)


@dataclass(frozen=True)
class Pair:
    ours: Distribution
    theirs: theirs.Distribution
    mode: Tensor


def pair(kind: str) -> Pair:
    logits = randn(6, 5)
    if kind == "categorical":
        return Pair(Categorical.from_logits(logits), theirs.Categorical(logits=logits), logits.argmax(-1))
    if kind == "gaussian":
        mean, log_std = randn(6, 3), randn(3, seed=2)
        normal = theirs.Independent(theirs.Normal(mean, log_std.exp()), 1)
        return Pair(DiagonalGaussian.from_log_std(mean, log_std), normal, mean)
    bits = theirs.Independent(theirs.Bernoulli(logits=logits), 1)
    return Pair(Bernoulli(logits), bits, (logits > 0).double())


@pytest.mark.parametrize("kind", ["categorical", "gaussian", "bernoullis"])
def test_log_prob_entropy_and_mode_equal_torch(kind: str) -> None:
    each = pair(kind)
    for action in (each.mode, each.ours.sample(uniforms(each.ours.num_uniforms, 6))):
        torch.testing.assert_close(each.ours.log_prob(action), each.theirs.log_prob(action))
    torch.testing.assert_close(each.ours.entropy(), each.theirs.entropy())
    assert torch.equal(each.ours.mode(), each.mode)


def test_multi_categorical_equals_independent_categoricals() -> None:
    logits, sizes = randn(6, 9), (2, 4, 3)
    ours = MultiCategorical.from_logits(logits, sizes)
    parts = [theirs.Categorical(logits=part) for part in logits.split(sizes, -1)]
    action = ours.sample(uniforms(ours.num_uniforms, 6))
    assert action.shape == (6, 3)
    torch.testing.assert_close(ours.log_prob(action), sum(p.log_prob(action[:, i]) for i, p in enumerate(parts)))
    torch.testing.assert_close(ours.entropy(), sum(p.entropy() for p in parts))
    assert torch.equal(ours.mode(), torch.stack([p.logits.argmax(-1) for p in parts], -1))


@pytest.mark.parametrize("kind", ["categorical", "multi", "gaussian", "bernoullis"])
def test_gradients_reach_the_outputs_of_the_net(kind: str) -> None:
    outputs = randn(4, 6).requires_grad_()
    made: dict[str, Distribution] = {
        "categorical": Categorical.from_logits(outputs),
        "multi": MultiCategorical.from_logits(outputs, (2, 4)),
        "gaussian": DiagonalGaussian.from_log_std(outputs, outputs[0]),
        "bernoullis": Bernoulli(outputs),
    }
    action = made[kind].sample(uniforms(made[kind].num_uniforms, 4)).detach()
    (gradient,) = torch.autograd.grad((made[kind].log_prob(action) + made[kind].entropy()).sum(), outputs)
    assert (gradient != 0).all()


def test_categorical_samples_have_the_right_frequencies() -> None:
    ours = MultiCategorical.from_logits(randn(9).expand(S, 9), (2, 4, 3))
    action_SA = ours.sample(uniforms(ours.num_uniforms))
    for i, part in enumerate(ours.parts):
        expected_K = S * part.log_prob_K[0].exp()
        assert abs(chi_square(action_SA[:, i].bincount(minlength=len(expected_K)).double(), expected_K)) < 4
        assert chi_square(action_SA[:, i].bincount(minlength=len(expected_K)).double(), expected_K.roll(1)) > 100
    pairs = (action_SA[:, 0] * 4 + action_SA[:, 1]).bincount(minlength=8).double()
    both = torch.outer(ours.parts[0].log_prob_K[0].exp(), ours.parts[1].log_prob_K[0].exp()).flatten()
    assert abs(chi_square(pairs, S * both)) < 4, "the parts are not independent"


def test_a_choice_of_probability_0_is_never_sampled_and_the_entropy_is_finite() -> None:
    logits_K = torch.tensor([0.0, -math.inf, 1.0], requires_grad=True)
    ours = Categorical.from_logits(logits_K.expand(1000, 3))
    assert set(ours.sample(uniforms(3, 1000)).tolist()) == {0, 2}
    torch.testing.assert_close(ours.entropy()[0], theirs.Categorical(logits=torch.tensor([0.0, 1.0])).entropy())
    ours.entropy().sum().backward()
    assert logits_K.grad is not None
    assert torch.isfinite(logits_K.grad).all()


def test_gaussian_samples_have_the_normal_distribution() -> None:
    """The Kolmogorov-Smirnov distance is small, and two components of an action are
    uncorrelated."""
    mean_A, log_std_A = torch.tensor([3.0, -1.0]).double(), torch.tensor([-2.0, 0.5]).double()
    ours = DiagonalGaussian.from_log_std(mean_A.expand(S, 2), log_std_A)
    z_SA = (ours.sample(uniforms(4)) - mean_A) / log_std_A.exp()
    below = theirs.Normal(0.0, 1.0).cdf(z_SA.sort(0).values)
    steps = torch.arange(1, S + 1, dtype=torch.float64)[:, None] / S
    assert float((below - steps).abs().max()) * math.sqrt(S) < 1.63  # the 99 % quantile
    assert abs(float(torch.corrcoef(z_SA.T)[0, 1])) < 4 / math.sqrt(S)


def test_bernoulli_samples_have_the_right_frequencies() -> None:
    logits_A = torch.tensor([-2.0, 0.0, 1.0]).double()
    share_A = Bernoulli(logits_A.expand(S, 3)).sample(uniforms(3)).mean(0)
    deviation_A = (logits_A.sigmoid() * (-logits_A).sigmoid() / S).sqrt()
    assert ((share_A - logits_A.sigmoid()).abs() < 4 * deviation_A).all()


@pytest.mark.parametrize("kind", ["categorical", "gaussian", "bernoullis"])
def test_a_sample_is_a_function_of_its_own_uniforms(kind: str) -> None:
    ours = pair(kind).ours
    uniform = uniforms(ours.num_uniforms, 6)
    action = ours.sample(uniform)
    torch.manual_seed(99)
    assert torch.equal(ours.sample(uniform), action)
    other = uniform.clone()
    other[1:] = uniforms(ours.num_uniforms, 12)[7:]
    assert torch.equal(ours.sample(other)[0], action[0])
    assert not torch.equal(ours.sample(other)[1:], action[1:])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_become_float32(dtype: torch.dtype) -> None:
    logits = randn(6, 5).to(dtype)
    for ours in (
        Categorical.from_logits(logits),
        MultiCategorical.from_logits(logits, (2, 3)),
        DiagonalGaussian.from_log_std(logits, torch.zeros(5, dtype=dtype)),
    ):
        action = ours.sample(uniforms(ours.num_uniforms, 6))
        assert ours.log_prob(action).dtype == ours.entropy().dtype == torch.float32
    torch.testing.assert_close(Categorical.from_logits(logits).log_prob_K, logits.float().log_softmax(-1))
