"""The terms of PPO's loss: worked by hand, and special cases."""

from __future__ import annotations

import math

import pytest
import torch

from ranks.rl import ppo_terms
from ranks.rl.policies.distributions import Categorical, DiagonalGaussian


@pytest.mark.parametrize(
    ("ratio", "advantage", "gain", "clipped"),
    [
        (1.0, 2.0, 2.0, 0.0),
        (1.5, 2.0, 2.5, 1.0),  # clipped at 1.25
        (0.5, 2.0, 1.0, 1.0),  # not clipped: it would make the loss smaller
        (1.5, -2.0, -3.0, 1.0),  # not clipped: it would make the loss smaller
        (0.5, -2.0, -1.5, 1.0),  # clipped at 0.75
        (1.25, 2.0, 2.5, 0.0),
        (7.0, 0.0, 0.0, 1.0),
    ],
)
def test_clipped_surrogate_by_hand(ratio: float, advantage: float, gain: float, clipped: float) -> None:
    ratio_N, advantage_N = torch.tensor([ratio]), torch.tensor([advantage])
    assert ppo_terms.clipped_surrogate(ratio_N, advantage_N, 0.25).item() == gain
    assert ppo_terms.is_clipped(ratio_N, 0.25).item() == clipped


@pytest.mark.parametrize(
    ("value", "old", "target", "loss"),
    [
        (3.0, 3.0, 5.0, 4.0),
        (5.0, 3.0, 5.0, 2.25),  # clipped to 3.5
        (3.25, 3.0, 5.0, 3.0625),
        (1.0, 3.0, 5.0, 16.0),  # away from the target is not clipped
        (6.0, 3.0, 2.0, 16.0),
    ],
)
def test_clipped_value_loss_by_hand(value: float, old: float, target: float, loss: float) -> None:
    numbers = [torch.tensor([n]) for n in (value, old, target)]
    assert ppo_terms.clipped_value_loss(*numbers, clip_range_vf=0.5).item() == loss


def test_clipped_value_loss_is_never_smaller_and_equals_value_loss_without_clipping() -> None:
    value, old, target = torch.randn(3, 500, generator=torch.Generator().manual_seed(1)).unbind(0)
    plain = ppo_terms.value_loss(value, target)
    clipped = ppo_terms.clipped_value_loss(value, old, target, 0.3)
    assert (clipped >= plain).all()
    assert (clipped > plain).any()
    torch.testing.assert_close(ppo_terms.clipped_value_loss(value, old, target, 1e9), plain)


def test_at_ratio_1_the_gradient_is_the_policy_gradient() -> None:
    logits = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    action, advantage = torch.tensor([0, 1, 2, 3, 0, 1]), torch.linspace(-1, 1, 6, dtype=torch.float64)
    logp = Categorical.from_logits(logits).log_prob(action)
    ratio = (logp - logp.detach()).exp()
    (surrogate,) = torch.autograd.grad(
        ppo_terms.clipped_surrogate(ratio, advantage, 0.2).sum(), logits, retain_graph=True
    )
    (plain,) = torch.autograd.grad((logp * advantage).sum(), logits)
    torch.testing.assert_close(surrogate, plain)


def test_outside_the_clip_range_the_gradient_is_0() -> None:
    ratio = torch.tensor([1.5, 0.5, 1.5, 0.5], requires_grad=True)
    ppo_terms.clipped_surrogate(ratio, torch.tensor([1.0, -1.0, -1.0, 1.0]), 0.2).sum().backward()
    assert ratio.grad is not None
    assert ratio.grad.tolist() == [0.0, 0.0, -1.0, 1.0]


def test_without_clipping_the_surrogate_is_ratio_times_advantage() -> None:
    random = torch.randn(2, 300, generator=torch.Generator().manual_seed(3))
    ratio, advantage = random[0].exp(), random[1]
    assert torch.equal(ppo_terms.clipped_surrogate(ratio, advantage, math.inf), ratio * advantage)


def test_approx_kl_is_never_negative_and_converges_to_the_kl_of_gaussians() -> None:
    assert (ppo_terms.approx_kl(torch.linspace(-5, 5, 1001)) >= 0).all()
    old = DiagonalGaussian.from_log_std(
        torch.zeros(200_000, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    )
    new = DiagonalGaussian.from_log_std(old.mean_A + 0.3, torch.full((1,), 0.2, dtype=torch.float64))
    action = old.sample(torch.rand(200_000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(4)))
    found = ppo_terms.approx_kl(new.log_prob(action) - old.log_prob(action))
    true = 0.2 + (1 + 0.3**2) / (2 * math.exp(0.4)) - 0.5  # of N(0, 1) from N(.3, e^.2)
    assert abs(float(found.mean()) - true) < 5 * float(found.std()) / math.sqrt(200_000)
    assert float(found.std()) / math.sqrt(200_000) < 0.02 * true
