"""The terms of PPO's loss and its diagnostics, as pure element-wise functions.

The caller takes the means.

Legend: all tensors of one call have the same shape, usually [T, B].
"""

from __future__ import annotations

import torch
from torch import Tensor


def clipped_surrogate(ratio: Tensor, advantage: Tensor, clip_range: float) -> Tensor:
    """PPO's clipped objective, which is maximised (Schulman et al. 2017, arXiv 1707.06347, eq. 7).

        min(ratio A, clip(ratio, 1 - epsilon, 1 + epsilon) A)

    `ratio`: the probability of the action under the new policy divided by that under the old one.
    `clip_range`: epsilon.
    """
    return torch.minimum(ratio * advantage, ratio.clamp(1.0 - clip_range, 1.0 + clip_range) * advantage)


def value_loss(value: Tensor, target: Tensor) -> Tensor:
    """The squared error, without a factor 1/2 (as in Stable-Baselines3; CleanRL has the factor)."""
    return (value - target).square()


def clipped_value_loss(value: Tensor, old_value: Tensor, target: Tensor, clip_range_vf: float) -> Tensor:
    """The larger of two squared errors: that of the value and that of the clipped value.

    The clipped value is within `clip_range_vf` of the old one (Huang et al. 2022, "The 37
    implementation details of proximal policy optimization", detail 9, without its factor 1/2).
    """
    clipped = old_value + (value - old_value).clamp(-clip_range_vf, clip_range_vf)
    return torch.maximum(value_loss(value, target), value_loss(clipped, target))


def approx_kl(log_ratio: Tensor) -> Tensor:
    """An unbiased, never negative estimate of KL(old || new) from samples: (r - 1) - log r.

    Schulman 2020, "Approximating KL divergence", k3; Stable-Baselines3 and CleanRL log the same.
    `log_ratio`: log r, the new log-probability minus the old one.
    """
    return torch.expm1(log_ratio) - log_ratio


def is_clipped(ratio: Tensor, clip_range: float) -> Tensor:
    """1 where the ratio is outside of the clip range, else 0.

    The mean is clip_fraction of Stable-Baselines3.
    """
    return ((ratio - 1.0).abs() > clip_range).to(ratio.dtype)
