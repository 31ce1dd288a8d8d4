"""The terms of policy-gradient losses: pure functions, element by element; who calls them takes the means.

Legend: all tensors of one call have the same shape, usually [T, B].
"""

from __future__ import annotations

import torch
from torch import Tensor


def clipped_surrogate(ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """What PPO makes large: min(ratio A, clip(ratio, 1 - c, 1 + c) A) (Schulman et al. 2017, arXiv 1707.06347, eq. 7).

    `ratio`: probability of the action under the new policy by that under the old one.
    """
    return torch.minimum(ratio * advantage, ratio.clamp(1.0 - clip, 1.0 + clip) * advantage)


def value_loss(value: Tensor, target: Tensor) -> Tensor:
    """The squared error."""
    return (value - target).square()


def clipped_value_loss(value: Tensor, old_value: Tensor, target: Tensor, clip: float) -> Tensor:
    """The larger of the loss and that of the value held within `clip` of the old one (Huang et al. 2022, "The 37
    implementation details of proximal policy optimization", detail 9)."""
    held = old_value + (value - old_value).clamp(-clip, clip)
    return torch.maximum(value_loss(value, target), value_loss(held, target))


def approx_kl(log_ratio: Tensor) -> Tensor:
    """KL(old || new) from samples of the old policy: (r - 1) - log r, never negative, unbiased (Schulman 2020,
    "Approximating KL divergence", k3)."""
    return torch.expm1(log_ratio) - log_ratio


def clipped_share(ratio: Tensor, clip: float) -> Tensor:
    """1 where the ratio lies outside of the clip range."""
    return ((ratio - 1.0).abs() > clip).to(ratio.dtype)
