"""The loss of games that were played without search. With search: `ranks.selfplay.alphazero_loss`.

Legend: B positions, M most legal moves of a position in the batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ranks.engine.update.loss import Loss
from ranks.selfplay import Encoding, Targets, expected_outcome, policy_and_value, value_loss


def policy_entropy(logits_BM: Tensor) -> Tensor:
    """The entropy of the policy over legal moves: [B], in nats. `logits_BM`: -inf behind the moves."""
    log_pi_BM = logits_BM.log_softmax(1).masked_fill(logits_BM == -torch.inf, 0.0)
    return -(logits_BM.softmax(1) * log_pi_BM).sum(1)


def reinforce(logits_BM: Tensor, column_B: Tensor, outcome_B: Tensor, baseline_B: Tensor) -> Tensor:
    """-(outcome - baseline) log pi(move): [B]; its gradient is that of REINFORCE with a baseline (Williams
    1992, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement Learning").

    `column_B`: int64, the column of the move that was played, sampled from pi. `outcome_B`: for the
    side that played it. `baseline_B`: the net's expected outcome; it gets no gradient here."""
    log_pi_B = logits_BM.log_softmax(1).gather(1, column_B[:, None])[:, 0]
    return -(outcome_B - baseline_B.detach()) * log_pi_B


def reinforce_loss(
    net: Any, batch: Targets, *, encoding: Encoding, value_weight: float = 1.0, entropy_weight: float = 0.0
) -> Loss:
    """REINFORCE + weight * value loss - weight * entropy of the policy over legal moves."""
    logits_BM, value = policy_and_value(net, encoding, batch.positions)
    policy_B = reinforce(logits_BM.float(), batch.column_B, batch.outcome_B, expected_outcome(value.float()))
    value_B, entropy_B = value_loss(value, batch.value_B), policy_entropy(logits_BM.float())
    loss_B = policy_B + value_weight * value_B - entropy_weight * entropy_B
    return Loss(loss_B.sum(), len(batch), value_loss=value_B.detach(), entropy=entropy_B.detach())
