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
    """How far a value may move from the rollout's value before its loss is clipped; None: no
    clipping."""
    vf_coef: float = 0.5
    """Weight of the value loss, which is the squared error without a factor 1/2."""
    ent_coef: float = 0.0
    """Weight of the entropy bonus."""
    gamma: float = 0.99
    """Discount per step."""
    gae_lambda: float = 0.95
    normalize_advantage: Literal["rollout", "minibatch", "none"] = "rollout"
    """Normalise advantages over the whole rollout, over each minibatch, or not at all; over all
    ranks together."""
    scale_rewards: bool = False
    """Divide rewards by the running standard deviation of the discounted return, from the
    iterations before."""
    target_kl: float | None = None
    """Start no further epoch when the mean KL divergence of one exceeds this; None: no limit."""

    def __post_init__(self) -> None:
        out_of_range = {
            "epochs": self.epochs < 1,
            "minibatches": self.minibatches < 1,
            "clip-range": not 0 < self.clip_range < math.inf,
            "clip-range-vf": self.clip_range_vf is not None and not 0 < self.clip_range_vf < math.inf,
            "vf-coef": not 0 <= self.vf_coef < math.inf,
            "ent-coef": not 0 <= self.ent_coef < math.inf,
            "gamma": not 0 <= self.gamma <= 1,
            "gae-lambda": not 0 <= self.gae_lambda <= 1,
            "target-kl": self.target_kl is not None and not self.target_kl > 0,
        }
        for name, is_bad in out_of_range.items():
            if is_bad:
                allowed = (
                    "epochs and minibatches are 1 or more, gamma and lambda lie in 0..1, clip ranges and the target KL "
                    "are above 0, coefficients are 0 or more"
                )
                asked = f"--ppo.{name} {getattr(self, name.replace('-', '_'))}"
                raise UserError(asked, f"out of range: {allowed}", f"give another --ppo.{name}")
