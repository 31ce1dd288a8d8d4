"""The loss: squared error of the win probability.

    p = 1 / (1 + exp(-logit))                          what the net says
    s = 1 / (1 + exp(-cp / 400))                       the score of the label
    r = (result + 1) / 2                               1 won, 1/2 drawn, 0 lost, for the side to move
    t = (1 - mix) s + mix r                            the target; s or r alone where the other is unknown
    loss = (p - t)^2

Legend: B positions.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ranks.engine.update.loss import Loss
from ranks.workloads.chess_value.labels.units import LABEL_CP_PER_LOGIT
from ranks.workloads.chess_value.net.inputs import Kind, device_inputs


class ValueBatch(NamedTuple):
    """Positions with their labels."""

    inputs: tuple[Tensor, ...]
    """Packed, as `host_inputs` makes them; `device_inputs` makes of them what the net takes."""
    cp_B: Tensor
    """float: the score of the side to move, in centipawns; 0 where it is unknown."""
    has_score_B: Tensor
    """bool: which scores are known."""
    result_B: Tensor
    """float: 1 won, 0 drawn, -1 lost, for the side to move; 0 where it is unknown."""
    has_result_B: Tensor
    """bool: which results are known."""


def target(batch: ValueBatch, mix: float) -> tuple[Tensor, Tensor]:
    """[B] targets and [B] weights: 0 where neither score nor result is known, else 1. `mix`: the result's share."""
    score_B = torch.sigmoid(batch.cp_B / LABEL_CP_PER_LOGIT)
    result_B = (batch.result_B + 1) / 2
    both_B = (1 - mix) * score_B + mix * result_B
    target_B = torch.where(batch.has_result_B, torch.where(batch.has_score_B, both_B, result_B), score_B)
    return target_B, (batch.has_score_B | batch.has_result_B).to(target_B.dtype)


def win_probability_of(model: nn.Module, batch: ValueBatch, kind: Kind) -> Tensor:
    """[B] what a net of this kind says. The batch is on the net's device."""
    return torch.sigmoid(model(*device_inputs(kind, batch.inputs)))


def value_loss(model: nn.Module, batch: ValueBatch, *, kind: Kind, mix: float) -> Loss:
    """The summed squared errors of the win probability, and as a metric the absolute ones.

    A position without any label has no share in the sum, but counts."""
    probability_B = win_probability_of(model, batch, kind)
    target_B, weight_B = target(batch, mix)
    error_B = (probability_B - target_B) * weight_B
    return Loss(error_B.square().sum(), len(error_B), error=error_B.abs())
