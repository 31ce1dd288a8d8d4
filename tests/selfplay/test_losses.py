"""The losses, by hand: positions with three legal moves, one, and two."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from ranks.selfplay import (
    Encoding,
    Positions,
    Targets,
    alphazero_loss,
    policy_entropy,
    policy_loss,
    reinforce_loss,
    value_loss,
)

INF = torch.inf


def logits() -> Tensor:
    """Three legal moves, one, and two."""
    return torch.tensor([[0.0, math.log(2), 0.0], [5.0, -INF, -INF], [1.0, -2.0, -INF]], dtype=torch.float64)


def differentiable(free: Tensor) -> Tensor:
    return free.masked_fill(logits() == -INF, -INF)


def free_logits() -> Tensor:
    return torch.where(logits() == -INF, 0.3, logits()).requires_grad_()


class Outputs(nn.Module):
    """A net whose logits and value are its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.logits, self.value = nn.Parameter(free_logits().detach()), nn.Parameter(torch.zeros(3))
        self.double()

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        return self.logits, self.value


ENCODING = Encoding(lambda positions: positions.states_BW)
TARGETS = Targets(
    Positions(torch.zeros(3, 1, dtype=torch.int64), torch.arange(3).repeat(3, 1), torch.tensor([3, 1, 2])),
    policy_BM=torch.tensor([[0.0, 1, 0], [1, 0, 0], [0, 1, 0]]),
    outcome_B=torch.tensor([1.0, -1.0, 0.0]),
    value_B=torch.tensor([1.0, -1.0, 0.0]),
    value_weight_B=torch.ones(3),
    is_truncated_B=torch.zeros(3, dtype=torch.bool),
)
"""Won, lost and drawn."""


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


def test_a_position_without_an_outcome_adds_no_value_loss() -> None:
    net = Outputs()
    weighted = replace(TARGETS, value_weight_B=torch.tensor([1.0, 0.0, 0.5]))
    with torch.no_grad():
        net.value.copy_(torch.tensor([0.5, 0.5, 0.5]))
        policy = alphazero_loss(net, TARGETS, encoding=ENCODING, vf_coef=0.0)
        found = alphazero_loss(net, weighted, encoding=ENCODING, vf_coef=2.0)
    assert float(found.sum - policy.sum) == pytest.approx(2.0 * (0.25 + 0.5 * 0.25))
    total, weight = found.metrics["value_loss"]
    assert float(total / weight) == pytest.approx((0.25 + 0.5 * 0.25) / 1.5), "the mean of the positions that learn"
    nothing = alphazero_loss(net, replace(TARGETS, value_weight_B=torch.zeros(3)), encoding=ENCODING)
    total, weight = nothing.metrics["value_loss"]
    assert float(total / weight) == 0.0


def test_entropy_by_hand() -> None:
    assert torch.allclose(policy_entropy(logits())[:2], torch.tensor([1.5 * math.log(2), 0.0], dtype=torch.float64))
    assert torch.autograd.gradcheck(lambda x: policy_entropy(differentiable(x)), free_logits())


def test_reinforce_by_hand() -> None:
    """With baselines 0.5, 0.5 and -1, and without the loss of the values."""
    net = Outputs()
    with torch.no_grad():
        net.value.copy_(torch.tensor([0.5, 0.5, -1.0]))
    found = reinforce_loss(net, TARGETS, encoding=ENCODING, vf_coef=0.0)
    log_pi = -3 - math.log1p(math.exp(-3))  # logits 1 and -2
    assert math.isclose(float(found.sum.detach()), 0.5 * math.log(2) - log_pi, rel_tol=1e-6)
    found.sum.backward()
    assert net.logits.grad is not None
    assert not net.value.grad.any(), "the policy's loss does not train the baseline"  # type: ignore[union-attr]
    # (outcome - baseline) (pi - played)
    assert torch.allclose(net.logits.grad[0], torch.tensor([0.125, -0.25, 0.125], dtype=torch.float64))
    assert net.logits.grad[1].tolist() == [0, 0, 0], "the only legal move"


def test_reinforce_adds_the_value_loss_and_subtracts_the_entropy() -> None:
    def loss(vf_coef: float, ent_coef: float) -> float:
        weights = {"vf_coef": vf_coef, "ent_coef": ent_coef}
        return float(reinforce_loss(Outputs(), TARGETS, encoding=ENCODING, **weights).sum.detach())

    entropy = float(policy_entropy(logits()).sum())
    assert math.isclose(loss(0.0, 2.0), loss(0.0, 0.0) - 2 * entropy, rel_tol=1e-6)
    assert math.isclose(loss(3.0, 0.0), loss(0.0, 0.0) + 3 * 2, rel_tol=1e-6), "squared errors 1, 1 and 0"


def test_reinforce_learns_nothing_but_entropy_from_a_truncated_game() -> None:
    net = Outputs()
    with torch.no_grad():
        net.value.fill_(0.5)
    truncated_B = torch.tensor([True, False, True])
    cut = replace(TARGETS, is_truncated_B=truncated_B, value_weight_B=(~truncated_B).float())
    found = reinforce_loss(net, cut, encoding=ENCODING, vf_coef=2.0)
    assert float(found.sum.detach()) == pytest.approx(2.0 * 1.5**2), "the value of the lost game; it has one move"
    total, count = found.metrics["value_loss"]
    assert float(total / count) == pytest.approx(1.5**2)
    assert found.metrics["policy_loss"].tolist() == [0, 0, 0]  # type: ignore[union-attr]
    found.sum.backward()
    assert net.logits.grad is not None
    assert not net.logits.grad.any()
    assert net.value.grad[[0, 2]].tolist() == [0, 0]  # type: ignore[index]
    reinforce_loss(net, cut, encoding=ENCODING, vf_coef=0.0, ent_coef=1.0).sum.backward()
    assert (net.logits.grad[0] != 0).any(), "its entropy counts"


def test_reinforce_is_unbiased_and_a_baseline_changes_only_the_variance() -> None:
    """Weighted by pi, the gradients of all moves add up to that of the expected outcome."""
    outcomes_M = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)
    three = Positions(TARGETS.positions.states_BW, TARGETS.positions.moves_BM, torch.tensor([3, 3, 3]))
    batch = replace(TARGETS, positions=three, policy_BM=torch.eye(3), outcome_B=outcomes_M)
    logits_M = torch.tensor([0.3, -0.2, 0.9], dtype=torch.float64, requires_grad=True)
    pi_M = logits_M.softmax(0)
    (wanted,) = torch.autograd.grad((pi_M * outcomes_M).sum(), logits_M)
    for baseline in (0.0, 0.7):
        net = Outputs()
        with torch.no_grad():
            net.logits.copy_(logits_M.expand(3, 3))
            net.value.fill_(baseline)
        reinforce_loss(net, batch, encoding=ENCODING, vf_coef=0.0).sum.backward()
        assert net.logits.grad is not None
        assert torch.allclose(pi_M.detach() @ net.logits.grad, -wanted, atol=1e-6)
