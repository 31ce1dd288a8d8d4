from __future__ import annotations

import math

import torch

from ranks.selfplay import policy_loss, value_loss
from ranks.workloads.chess_spiking.losses import policy_entropy, reinforce

INF = torch.inf


def logits() -> torch.Tensor:
    """Three legal moves, one, and two."""
    return torch.tensor([[0.0, math.log(2), 0.0], [5.0, -INF, -INF], [1.0, -2.0, -INF]], dtype=torch.float64)


def differentiable(free: torch.Tensor) -> torch.Tensor:
    return free.masked_fill(logits() == -INF, -INF)


def free_logits() -> torch.Tensor:
    return torch.where(logits() == -INF, 0.3, logits()).requires_grad_()


def test_policy_loss_by_hand() -> None:
    """pi = (1/4, 1/2, 1/4) and visit shares 1/4, 0, 3/4: -(1/4 + 3/4) log(1/4) = log 4."""
    share_BM = torch.tensor([[0.25, 0, 0.75], [1, 0, 0], [0, 0, 0]])
    assert torch.allclose(policy_loss(logits(), share_BM), torch.tensor([math.log(4), 0.0, 0.0]))
    free = free_logits()
    policy_loss(differentiable(free), share_BM)[:2].sum().backward()
    assert free.grad is not None
    assert torch.allclose(free.grad[:2].float(), logits().softmax(1)[:2].float() - share_BM[:2])


def test_value_loss_by_hand() -> None:
    """Win, draw and loss 3/5, 1/5, 1/5 and a win; 1/3 each and a draw."""
    wdl_B3 = torch.tensor([[math.log(3), 0.0, 0.0], [0.0, 0.0, 0.0]])
    found_B = value_loss(wdl_B3, torch.tensor([1.0, 0.0]))
    assert torch.allclose(found_B, torch.tensor([math.log(5 / 3), math.log(3)]))


def test_entropy_by_hand() -> None:
    assert torch.allclose(policy_entropy(logits())[:2], torch.tensor([1.5 * math.log(2), 0.0], dtype=torch.float64))
    assert torch.autograd.gradcheck(lambda x: policy_entropy(differentiable(x)), free_logits())


def test_reinforce_by_hand() -> None:
    """Moves 1, 0 and 1; outcomes 1, -1, 0; baselines 0.5, 0.5, -1."""
    chosen_B = torch.tensor([1, 0, 1])
    outcome_B = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)
    baseline_B = torch.tensor([0.5, 0.5, -1.0], dtype=torch.float64, requires_grad=True)
    free = free_logits()
    found_B = reinforce(differentiable(free), chosen_B, outcome_B, baseline_B)
    log_pi = -3 - math.log1p(math.exp(-3))  # logits 1 and -2
    assert torch.allclose(found_B, torch.tensor([0.5 * math.log(2), 0.0, -log_pi], dtype=torch.float64))
    found_B.sum().backward()
    assert baseline_B.grad is None, "the baseline is not trained by the policy's loss"
    assert free.grad is not None
    # (outcome - baseline) (pi - chosen)
    assert torch.allclose(free.grad[0], torch.tensor([0.125, -0.25, 0.125], dtype=torch.float64))
    assert free.grad[1].tolist() == [0, 0, 0], "the only legal move"


def test_reinforce_is_unbiased_and_a_baseline_changes_only_the_variance() -> None:
    """Weighted by pi, the gradients of all moves add up to that of the expected outcome."""
    outcomes_M = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)
    logits_M = torch.tensor([0.3, -0.2, 0.9], dtype=torch.float64, requires_grad=True)
    (wanted,) = torch.autograd.grad((logits_M.softmax(0) * outcomes_M).sum(), logits_M)
    for baseline in (0.0, 0.7):
        loss_M = reinforce(
            logits_M.expand(3, 3), torch.arange(3), outcomes_M, torch.full((3,), baseline, dtype=torch.float64)
        )
        (found,) = torch.autograd.grad((logits_M.detach().softmax(0) * loss_M).sum(), logits_M)
        assert torch.allclose(found, -wanted)
