"""The settings of PPO. Imports no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ranks.errors import UserError


@dataclass(frozen=True)
class PPOConfig:
    """Settings of proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347).

    The names are those of Stable-Baselines3 and CleanRL. Raises UserError for a value out of range.
    """

    epochs: int = 4
    """Passes over each rollout (n_epochs of Stable-Baselines3)."""
    minibatches: int = 4
    """Updates in one pass. Each takes the whole sequences of 1/minibatches of the environments."""
    clip_range: float = 0.2
    """Epsilon of the clipped objective: the probability ratio counts within 1 - epsilon to 1 +
    epsilon."""
    clip_range_vf: float | None = None
    """How far a value may move from the rollout's value before its loss is clipped; none: no
    clipping."""
    vf_coef: float = 0.5
    """Weight of the value loss, which is the squared error without a factor 1/2."""
    ent_coef: float = 0.0
    """Weight of the entropy bonus."""
    gamma: float = 0.99
    """Discount per step."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation: 0 is the one-step error, 1 the whole return."""
    normalize_advantage: Literal["rollout", "minibatch", "none"] = "rollout"
    """Normalise advantages over the whole rollout, over each minibatch, or not at all; over all
    ranks together."""
    scale_rewards: bool = False
    """Divide rewards by the running standard deviation of the discounted return, from the
    iterations before."""
    target_kl: float | None = None
    """Start no further epoch when the mean KL divergence of one exceeds this; none: no limit."""

    def __post_init__(self) -> None:
        count, fraction, above_0, not_below_0 = "1 or more", "a number from 0 to 1", "a number above 0", "0 or more"
        vf, kl = self.clip_range_vf, self.target_kl
        limits = {
            "epochs": (self.epochs >= 1, count),
            "minibatches": (self.minibatches >= 1, count),
            "clip-range": (0 < self.clip_range < math.inf, above_0),
            "clip-range-vf": (vf is None or 0 < vf < math.inf, above_0),
            "vf-coef": (0 <= self.vf_coef < math.inf, not_below_0),
            "ent-coef": (0 <= self.ent_coef < math.inf, not_below_0),
            "gamma": (0 <= self.gamma <= 1, fraction),
            "gae-lambda": (0 <= self.gae_lambda <= 1, fraction),
            "target-kl": (kl is None or kl > 0, above_0),
        }
        for name, (is_valid, allowed) in limits.items():
            if not is_valid:
                value = getattr(self, name.replace("-", "_"))
                raise UserError(f"--ppo.{name} {value}", f"it must be {allowed}", f"give --ppo.{name} {allowed}")
