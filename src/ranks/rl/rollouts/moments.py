"""Weights of steps, and statistics of a rollout over the environments of all ranks.

Legend: T steps, B environments of this rank, E of all ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ranks.rl.environments import EnvironmentIds
from ranks.rl.rollouts.rollout import Rollout
from ranks.rl.running_mean_std import ROUNDING, sum_over_steps


def normalised_weights(weight_TB: Tensor, ids: EnvironmentIds) -> Tensor:
    """Scale the weights of this rank's steps (0 or 1) so that their mean over all ranks is 1.

    Every rank calls it.
    """
    return weight_TB / mean_weight(ids.gather(sum_over_steps(weight_TB.double())).cpu(), len(weight_TB))


def mean_weight(weight_B: Tensor, n_steps: int) -> float:
    """The mean weight of a step, from the sums of some environments; 1 if all are 0."""
    return float(weight_B.mean()) / n_steps or 1.0


@dataclass(frozen=True)
class Scaling:
    """The map (advantage - mean) / std."""

    mean: float
    std: float


UNSCALED = Scaling(0.0, 1.0)


@dataclass(frozen=True)
class RolloutMoments:
    """Weighted sums over the steps of each environment of all ranks.

    float64 on the CPU, in the order of the environment ids.
    """

    advantage_E3: Tensor
    """Weight, advantage, advantage squared."""
    return_E2: Tensor
    """Return, return squared."""
    error_E2: Tensor
    """Error of the value (return - value), error squared."""

    @classmethod
    def of(cls, rollout: Rollout, ids: EnvironmentIds) -> RolloutMoments:
        """Those of all ranks' rollouts. Every rank calls it and gets the same."""
        advantage_TB, return_TB = rollout.advantage_TB.double(), rollout.return_TB.double()
        weight_TB = torch.ones_like(advantage_TB) if rollout.weight_TB is None else rollout.weight_TB.double()
        error_TB = return_TB - rollout.value_TB.double()
        sums = [weight_TB]
        for term_TB in (advantage_TB, return_TB, error_TB):
            sums += [weight_TB * term_TB, weight_TB * term_TB.square()]
        sums_E7 = ids.gather(sum_over_steps(torch.stack(sums, 2))).cpu()
        return cls(sums_E7[:, :3].contiguous(), sums_E7[:, 3:5].contiguous(), sums_E7[:, 5:].contiguous())

    @property
    def weight_E(self) -> Tensor:
        """The sum of the weights of each environment's steps."""
        return self.advantage_E3[:, 0]

    def advantage_scaling(self, env_K: Tensor | None = None) -> Scaling:
        """How to normalise the advantages of all environments, or of the int64 ids `env_K`."""
        moments_E3 = self.advantage_E3 if env_K is None else self.advantage_E3[env_K]
        count, total, square = moments_E3.sum(0).tolist()
        mean, variance = _mean_variance(count, total, square)
        return Scaling(mean, (variance + 1e-16) ** 0.5)

    def explained_variance(self) -> float:
        """1 - Var[return - value] / Var[return] over all steps of all ranks.

        Stable-Baselines3 has the same definition.

        1: the value predicts the return exactly; 0: it is no better than a constant; below 0: it is
        worse. NaN where the returns do not vary.
        """
        count = float(self.weight_E.sum())
        mean, variance = _mean_variance(count, *self.return_E2.sum(0).tolist())
        _, error_variance = _mean_variance(count, *self.error_E2.sum(0).tolist())
        return 1.0 - error_variance / variance if variance > (ROUNDING * mean) ** 2 else float("nan")


def _mean_variance(count: float, total: float, square: float) -> tuple[float, float]:
    """Mean and variance from a count, a sum and a sum of squares; 0 and 0 without a count."""
    mean = total / max(count, 1.0)
    return mean, max(square / max(count, 1.0) - mean * mean, 0.0)
