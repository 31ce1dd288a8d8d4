from __future__ import annotations

import math

import torch

from ranks.workloads.chess_spiking.losses import (
    expected_outcome,
    outcome_target,
    policy_cross_entropy,
    policy_entropy,
    reinforce,
    target_entropy,
    wdl_cross_entropy,
)

INF = torch.inf


def logits() -> torch.Tensor:
    """Three legal moves, one, and two."""
    return torch.tensor([[0.0, math.log(2), 0.0], [5.0, -INF, -INF], [1.0, -2.0, -INF]], dtype=torch.float64)


def differentiable(free: torch.Tensor) -> torch.Tensor:
    return free.masked_fill(logits() == -INF, -INF)


def free_logits() -> torch.Tensor:
    return torch.where(logits() == -INF, 0.3, logits()).requires_grad_()


def test_policy_cross_entropy_by_hand() -> None:
    """pi = (1/4, 1/2, 1/4) and visits 1, 0, 3: -(1/4 + 3/4) log(1/4) = log 4."""
    visits_BM = torch.tensor([[1.0, 0, 3], [7, 0, 0], [0, 0, 0]], dtype=torch.float64)
    found_B = policy_cross_entropy(logits(), visits_BM)
    assert torch.allclose(found_B, torch.tensor([math.log(4), 0.0, 0.0], dtype=torch.float64))
    # the scale of visits does not matter
    assert torch.allclose(found_B, policy_cross_entropy(logits(), 17 * visits_BM))
    assert torch.autograd.gradcheck(lambda x: policy_cross_entropy(differentiable(x), visits_BM), free_logits())


def test_the_gradient_of_the_cross_entropy_is_policy_less_target() -> None:
    visits_BM = torch.tensor([[1.0, 0, 3], [7, 0, 0], [1, 1, 0]], dtype=torch.float64)
    free = free_logits()
    policy_cross_entropy(differentiable(free), visits_BM).sum().backward()
    target_BM = visits_BM / visits_BM.sum(1, keepdim=True)
    assert free.grad is not None
    assert torch.allclose(free.grad, logits().softmax(1) - target_BM)


def test_entropies_by_hand() -> None:
    visits_BM = torch.tensor([[2.0, 2, 0], [5, 0, 0], [0, 0, 0]])
    assert torch.allclose(target_entropy(visits_BM), torch.tensor([math.log(2), 0.0, 0.0]))
    assert torch.allclose(policy_entropy(logits())[:2], torch.tensor([1.5 * math.log(2), 0.0], dtype=torch.float64))
    assert torch.autograd.gradcheck(lambda x: policy_entropy(differentiable(x)), free_logits())


def test_win_draw_loss_by_hand() -> None:
    wdl_B3 = torch.tensor([[math.log(3), 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)  # 3/5, 1/5, 1/5
    outcome_B = torch.tensor([1.0, 0.0], dtype=torch.float64)
    target_B3 = outcome_target(outcome_B, torch.zeros(2, dtype=torch.float64), 0.0)
    assert target_B3.tolist() == [[1, 0, 0], [0, 1, 0]]
    found_B = wdl_cross_entropy(wdl_B3, target_B3)
    assert torch.allclose(found_B, torch.tensor([math.log(5 / 3), math.log(3)], dtype=torch.float64))
    assert torch.allclose(expected_outcome(wdl_B3), torch.tensor([2 / 5, 0.0], dtype=torch.float64))
    assert torch.autograd.gradcheck(lambda x: wdl_cross_entropy(x, target_B3), wdl_B3.requires_grad_())


def test_a_share_of_the_target_comes_from_the_search() -> None:
    outcome_B, root_value_B = torch.tensor([-1.0, 1.0]), torch.tensor([0.5, -0.25])
    target_B3 = outcome_target(outcome_B, root_value_B, 0.4)
    assert torch.allclose(target_B3, torch.tensor([[0.2, 0.2, 0.6], [0.6, 0.3, 0.1]]))
    assert torch.allclose(target_B3[:, 0] - target_B3[:, 2], 0.6 * outcome_B + 0.4 * root_value_B)


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
