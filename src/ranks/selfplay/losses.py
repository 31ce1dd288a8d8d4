"""The losses of self-play, as pure functions of a net and a batch.

Legend: B positions, M the most legal moves of a position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ranks.engine.update.loss import Loss
from ranks.selfplay.net.encoding import Encoding, Positions, check_value, expected_outcome, policy_and_value

TINY = 1e-9
"""In place of a count of 0: a mean over no position is 0."""


@dataclass(frozen=True)
class Targets:
    """A batch from the replay window, on the device: positions, and what the net is to say of them."""

    positions: Positions
    policy_BM: Tensor
    """float32: probabilities of the legal moves, 0 behind them."""
    outcome_B: Tensor
    """float32: how the game ended for the side to move, -1, 0 or 1; 0 where it was truncated at the most plies."""
    value_B: Tensor
    """float32: the value target, a mixture of both (`ReplayConfig.root_value`)."""
    value_weight_B: Tensor
    """float32: the weight of the value loss: 1, or less where a game was truncated and has no outcome."""
    is_truncated_B: Tensor
    """bool: whether the game was truncated at the most plies, so that nobody knows its outcome."""

    def __len__(self) -> int:
        return len(self.value_B)


def policy_loss(logits_BM: Tensor, policy_BM: Tensor) -> Tensor:
    """-sum_a target(a) log pi(a): [B], in nats. `logits_BM`: of the legal moves, -inf behind them."""
    log_pi_BM = logits_BM.float().log_softmax(1).masked_fill(logits_BM == -torch.inf, 0.0)
    return -(policy_BM * log_pi_BM).sum(1)


def policy_entropy(logits_BM: Tensor) -> Tensor:
    """The entropy of the policy over legal moves: [B], in nats. `logits_BM`: -inf behind the moves."""
    log_pi_BM = logits_BM.log_softmax(1).masked_fill(logits_BM == -torch.inf, 0.0)
    return -(logits_BM.softmax(1) * log_pi_BM).sum(1)


def value_loss(value: Tensor, target_B: Tensor) -> Tensor:
    """[B]. The squared error of a value [B]. Of logits of win, draw and loss [B, 3] the cross-entropy to
    win max(t, 0), draw 1 - |t|, loss max(-t, 0), which has the mean t. Raises UserError for another shape."""
    check_value(value, len(target_B))
    if value.ndim == 1:
        return (value.float() - target_B).square()
    wdl_B3 = torch.stack([target_B.clamp(min=0), 1 - target_B.abs(), (-target_B).clamp(min=0)], 1)
    return -(wdl_B3 * value.float().log_softmax(1)).sum(1)


def alphazero_loss(net: Any, batch: Targets, *, encoding: Encoding, vf_coef: float = 1.0) -> Loss:
    """Policy loss + vf_coef * value loss (Silver et al. 2018, arXiv 1712.01815; weight decay is the
    optimizer's). The value loss has the weight `Targets.value_weight_B`; its metric is the mean with that weight."""
    logits_BM, value = policy_and_value(net, encoding, batch.positions)
    policy_B = policy_loss(logits_BM, batch.policy_BM)
    value_B = batch.value_weight_B * value_loss(value, batch.value_B)
    loss_B = policy_B + vf_coef * value_B
    value_mean = value_B.detach().sum(), batch.value_weight_B.sum().clamp(min=TINY)
    return Loss(loss_B.sum(), len(batch), policy_loss=policy_B.detach(), value_loss=value_mean)


def reinforce_loss(
    net: Any, batch: Targets, *, encoding: Encoding, vf_coef: float = 1.0, ent_coef: float = 0.0
) -> Loss:
    """REINFORCE with the value as baseline (Williams 1992, "Simple Statistical Gradient-Following Algorithms
    for Connectionist Reinforcement Learning"): moves that led to more than was expected become more likely.
    For games without search, from a window with `ReplayConfig(reuse=1, on_policy=True)`, which gives each
    position of the newest iteration at most once. It is on-policy in the first update of an iteration only:
    the later updates, and the first moves of games that go on from the iteration before, have moves that
    older weights have sampled; they are not corrected. A truncated game has no outcome: neither the policy nor
    the value learns from it, only the entropy counts.

    `ent_coef`: factor of the policy's entropy over legal moves, which is subtracted."""
    logits_BM, value = policy_and_value(net, encoding, batch.positions)
    advantage_B = (batch.outcome_B - expected_outcome(value.float()).detach()).masked_fill(batch.is_truncated_B, 0.0)
    value_B = value_loss(value, batch.outcome_B).masked_fill(batch.is_truncated_B, 0.0)
    entropy_B = policy_entropy(logits_BM.float())
    policy_B = advantage_B * policy_loss(logits_BM, batch.policy_BM)
    loss_B = policy_B + vf_coef * value_B - ent_coef * entropy_B
    value_mean = value_B.detach().sum(), (~batch.is_truncated_B).to(value_B.dtype).sum().clamp(min=TINY)
    policy, entropy = policy_B.detach(), entropy_B.detach()
    return Loss(loss_B.sum(), len(batch), policy_loss=policy, value_loss=value_mean, entropy=entropy)
