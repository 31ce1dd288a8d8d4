"""Running means and deviations of observations and rewards, merged over ranks in float64 in the order of ids.

Statistics are frozen within an iteration, so that a rollout and the updates from it see the same numbers.

Legend: T steps, B environments, F features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ranks.rl.environments import EnvironmentIds

FLOOR = 1e-8
"""Added to a variance, as Stable-Baselines3 and gymnasium do."""
ROUNDING = 1e-6
"""A deviation of so little of the mean is float32's own."""


class RunningMoments:
    """Count, mean and variance of everything seen so far, the same on all ranks. Kept by a run as its state."""

    def __init__(self, num_features: int) -> None:
        self.count = 0.0
        self.mean_F = torch.zeros(num_features, dtype=torch.float64)
        self.square_F = torch.zeros(num_features, dtype=torch.float64)
        """Sum of squared deviations from the mean."""

    @property
    def std_F(self) -> Tensor:
        """sqrt(variance + 1e-8), so that a tremor is not blown up to the clip; 1 where nothing was seen yet, or nothing
        that varied by more than rounding does."""
        variance_F = self.square_F / max(self.count, 1.0)
        varied_F = variance_F > (ROUNDING * self.mean_F).square()
        return torch.where(varied_F, (variance_F + FLOOR).sqrt(), 1.0)

    def update(self, rows_TBF: Tensor, ids: EnvironmentIds, valid_TB: Tensor | None = None) -> None:
        """Take in one row for each step and environment of this rank, and those of the others. Every rank calls it.

        `valid_TB`: 0 where a step was none, whose row is left out (`Rollout.valid_TB`). Parallel variance: Chan, Golub
        & LeVeque 1979, "Updating formulae and a pairwise algorithm".
        """
        rows_TBF = rows_TBF.double()
        counts_TB1 = torch.ones_like(rows_TBF[..., :1]) if valid_TB is None else (valid_TB > 0).double()[..., None]
        count_B1 = sum_over_steps(counts_TB1)
        mean_BF = sum_over_steps(rows_TBF * counts_TB1) / count_B1.clamp(min=1.0)
        square_BF = sum_over_steps((rows_TBF - mean_BF).square() * counts_TB1)
        of_all_Bx = ids.gather(torch.cat([count_B1, mean_BF, square_BF], 1)).cpu()
        count_B1, mean_BF, square_BF = of_all_Bx.split([1, len(self.mean_F), len(self.mean_F)], 1)
        count = float(count_B1.sum())
        if count:
            mean_F = (count_B1 * mean_BF).sum(0) / count
            self._merge(count, mean_F, square_BF.sum(0) + (count_B1 * (mean_BF - mean_F).square()).sum(0))

    def _merge(self, count: float, mean_F: Tensor, square_F: Tensor) -> None:
        total = self.count + count
        delta_F = mean_F - self.mean_F
        self.square_F = self.square_F + square_F + delta_F.square() * (self.count * count / total)
        self.mean_F = self.mean_F + delta_F * (count / total)
        self.count = total

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count, "mean_F": self.mean_F, "square_F": self.square_F}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.count = float(state["count"])
        self.mean_F, self.square_F = state["mean_F"].cpu(), state["square_F"].cpu()


def sum_over_steps(rows_TB: Tensor) -> Tensor:
    """[T, B, ...] -> [B, ...], added up as a binary tree of whole rows: an environment's sum is the same bits however
    many stand beside it on its rank. (The order in which `Tensor.sum` adds depends on that.)"""
    while len(rows_TB) > 1:
        half = len(rows_TB) // 2
        rows_TB = torch.cat([rows_TB[:half] + rows_TB[half : 2 * half], rows_TB[2 * half :]])
    return rows_TB[0]


class Normaliser(nn.Module):
    """(x - mean) / std, held within +-clip: a part of the policy, so that it is exported with it."""

    mean_F: Tensor
    std_F: Tensor

    def __init__(self, num_features: int, clip: float = 10.0) -> None:
        super().__init__()
        self.num_features, self.clip = num_features, clip
        self.register_buffer("mean_F", torch.zeros(num_features))
        self.register_buffer("std_F", torch.ones(num_features))

    def forward(self, x: Tensor) -> Tensor:
        """[..., F] -> [..., F]."""
        return ((x - self.mean_F) / self.std_F).clamp(-self.clip, self.clip)


def freeze(moments: RunningMoments, into: Normaliser) -> None:
    """Let the policy see by these moments from now on."""
    with torch.no_grad():
        into.mean_F.copy_(moments.mean_F)
        into.std_F.copy_(moments.std_F)
