"""The losses, as pure functions: one value for each position. The caller sums them (`ranks.Loss`).

Legend: B positions, M most legal moves of a position in the batch, 3 = win, draw, loss for the side
to move.

`logits_BM` are those of the legal moves, -inf behind them (`moves.legal_logits`).
"""

from __future__ import annotations

import torch
from torch import Tensor


def log_policy(logits_BM: Tensor) -> Tensor:
    """log pi(a) of the legal moves; 0 behind them, where a product with a target must not be NaN."""
    log_pi_BM = logits_BM.log_softmax(1)
    return log_pi_BM.masked_fill(logits_BM == -torch.inf, 0.0)


def policy_cross_entropy(logits_BM: Tensor, visits_BM: Tensor) -> Tensor:
    """-sum_a target(a) log pi(a): [B], in nats (AlphaZero, Silver et al. 2018, arXiv 1712.01815).

    `visits_BM`: visit counts or any weights of the legal moves, not negative, in the order of the
    logits; 0 for moves without visits and behind the moves. Their shares are the target. A position
    without visits has loss 0."""
    total_B1 = visits_BM.sum(1, keepdim=True)
    target_BM = visits_BM / total_B1.clamp(min=torch.finfo(visits_BM.dtype).tiny)
    return -(target_BM * log_policy(logits_BM)).sum(1)


def target_entropy(visits_BM: Tensor) -> Tensor:
    """The entropy of the target of `policy_cross_entropy`: [B], in nats. Cross-entropy less this is
    the divergence KL(target || pi)."""
    total_B1 = visits_BM.sum(1, keepdim=True)
    target_BM = visits_BM / total_B1.clamp(min=torch.finfo(visits_BM.dtype).tiny)
    return -torch.xlogy(target_BM, target_BM).sum(1)


def outcome_target(outcome_B: Tensor, root_value_B: Tensor, root_share: float) -> Tensor:
    """[B, 3]: probabilities of win, draw and loss to learn.

    `outcome_B`: 1, 0 or -1 for the side to move. A part `root_share` of the target comes from the
    search's value of the position, q in -1 to 1, as win max(q, 0), draw 1 - |q|, loss max(-q, 0): of
    all distributions with the mean q, the one with the most draws. This split is our own."""

    def spread(value_B: Tensor) -> Tensor:
        return torch.stack([value_B.clamp(min=0), 1 - value_B.abs(), (-value_B).clamp(min=0)], 1)

    return (1 - root_share) * spread(outcome_B) + root_share * spread(root_value_B)


def wdl_cross_entropy(wdl_B3: Tensor, target_B3: Tensor) -> Tensor:
    """Cross-entropy of win, draw and loss: [B], in nats. `wdl_B3`: logits."""
    return -(target_B3 * wdl_B3.log_softmax(1)).sum(1)


def expected_outcome(wdl_B3: Tensor) -> Tensor:
    """P(win) - P(loss): [B], from -1 to 1, from logits."""
    probabilities_B3 = wdl_B3.softmax(1)
    return probabilities_B3[:, 0] - probabilities_B3[:, 2]


def reinforce(logits_BM: Tensor, chosen_B: Tensor, outcome_B: Tensor, baseline_B: Tensor) -> Tensor:
    """-(outcome - baseline) log pi(chosen move): [B]; its gradient is that of REINFORCE with a baseline
    (Williams 1992, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement
    Learning").

    `chosen_B`: int64, the column of the move that was played, sampled from pi. `outcome_B`: for the
    side that played it. `baseline_B`: the net's expected outcome; it gets no gradient here."""
    log_pi_B = log_policy(logits_BM).gather(1, chosen_B[:, None])[:, 0]
    return -(outcome_B - baseline_B.detach()) * log_pi_B


def policy_entropy(logits_BM: Tensor) -> Tensor:
    """The entropy of pi over the legal moves: [B], in nats."""
    log_pi_BM = log_policy(logits_BM)
    pi_BM = logits_BM.softmax(1)
    return -(pi_BM * log_pi_BM).sum(1)
