"""Running mean and standard deviation, and the layer that normalises observations.

Statistics of all ranks are merged in float64 in the order of the environment ids, so they do not
depend on the number of ranks. They do not change within an iteration: a rollout and the updates
from it use the same ones.

Legend: T steps, B environments, F features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ranks.rl.environments import EnvironmentIds

EPSILON = 1e-8
"""Added to a variance, as in Stable-Baselines3 and gymnasium."""
ROUNDING = 1e-6
"""A standard deviation below this fraction of the mean is rounding of float32, not variation."""


class RunningMeanStd:
    """Count, mean and variance of all rows so far, the same on all ranks.

    Stable-Baselines3 has a class of the same name for one process.
    """

    def __init__(self, num_features: int) -> None:
        self.count = 0.0
        self.mean_F = torch.zeros(num_features, dtype=torch.float64)
        self.square_F = torch.zeros(num_features, dtype=torch.float64)
        """Sum of squared deviations from the mean."""

    @property
    def std_F(self) -> Tensor:
        """sqrt(variance + 1e-8), float64; 1 for a feature that does not vary.

        Variation by rounding of float32 alone does not count.
        """
        variance_F = self.square_F / max(self.count, 1.0)
        varied_F = variance_F > (ROUNDING * self.mean_F).square()
        return torch.where(varied_F, (variance_F + EPSILON).sqrt(), 1.0)

    def update(self, rows_TBF: Tensor, ids: EnvironmentIds, weight_TB: Tensor | None = None) -> None:
        """Add one row for each step and environment of this rank, and those of the other ranks.

        Every rank calls it.

        `weight_TB`: rows of weight 0 are left out (`Rollout.weight_TB`). The parallel variance is
        that of Chan, Golub & LeVeque 1979, "Updating formulae and a pairwise algorithm".
        """
        rows_TBF = rows_TBF.double()
        counts_TB1 = torch.ones_like(rows_TBF[..., :1]) if weight_TB is None else (weight_TB > 0).double()[..., None]
        # Each environment's own count, mean and squared deviations, which do not depend on its
        # rank.
        count_B1 = sum_over_steps(counts_TB1)
        mean_BF = sum_over_steps(rows_TBF * counts_TB1) / count_B1.clamp(min=1.0)
        square_BF = sum_over_steps((rows_TBF - mean_BF).square() * counts_TB1)
        # Those of all environments, in the order of their ids, merged into one.
        of_all_Bx = ids.gather(torch.cat([count_B1, mean_BF, square_BF], 1)).cpu()
        count_B1, mean_BF, square_BF = of_all_Bx.split([1, len(self.mean_F), len(self.mean_F)], 1)
        count = float(count_B1.sum())
        if count:
            mean_F = (count_B1 * mean_BF).sum(0) / count
            self._merge(count, mean_F, square_BF.sum(0) + (count_B1 * (mean_BF - mean_F).square()).sum(0))

    def _merge(self, count: float, mean_F: Tensor, square_F: Tensor) -> None:
        """Merge the statistics of `count` further rows into these."""
        total = self.count + count
        delta_F = mean_F - self.mean_F
        self.square_F = self.square_F + square_F + delta_F.square() * (self.count * count / total)
        self.mean_F = self.mean_F + delta_F * (count / total)
        self.count = total

    def state_dict(self) -> dict[str, Any]:
        """Count, mean and sum of squared deviations."""
        return {"count": self.count, "mean_F": self.mean_F, "square_F": self.square_F}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.count = float(state["count"])
        self.mean_F, self.square_F = state["mean_F"].cpu(), state["square_F"].cpu()


def sum_over_steps(rows_TB: Tensor) -> Tensor:
    """Sum over steps, [T, B, ...] -> [B, ...], independent of the number of environments.

    The bits of a column do not depend on how many others are in the tensor.

    It adds whole rows as a binary tree. (The order in which `Tensor.sum` adds depends on the size
    of the tensor.)
    """
    while len(rows_TB) > 1:
        half = len(rows_TB) // 2
        rows_TB = torch.cat([rows_TB[:half] + rows_TB[half : 2 * half], rows_TB[2 * half :]])
    return rows_TB[0]


class Normaliser(nn.Module):
    """The layer (x - mean) / std, clipped to +-clip.

    It is a part of the policy, so it is exported with it.
    """

    mean_F: Tensor
    std_F: Tensor

    def __init__(self, num_features: int, clip: float = 10.0) -> None:
        super().__init__()
        self.num_features, self.clip = num_features, clip
        self.register_buffer("mean_F", torch.zeros(num_features))
        self.register_buffer("std_F", torch.ones(num_features))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise features: [..., F] -> [..., F]."""
        return ((x - self.mean_F) / self.std_F).clamp(-self.clip, self.clip)

    def set_statistics(self, mean_F: Tensor, std_F: Tensor) -> None:
        """Normalise with this mean and standard deviation from now on."""
        with torch.no_grad():
            self.mean_F.copy_(mean_F)
            self.std_F.copy_(std_F)
