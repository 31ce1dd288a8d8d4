"""Settings of PPO. Imports no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ranks.errors import UserError


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347)."""

    epochs: int = 4
    """Passes over each rollout."""
    minibatches: int = 4
    """Updates of one pass; each takes every so many environments, whole sequences."""
    clip: float = 0.2
    """How far the ratio of probabilities counts."""
    value_clip: float | None = None
    """How far a value may move from the rollout's within an iteration, counted in its loss; none: freely."""
    value_weight: float = 0.5
    entropy_weight: float = 0.0
    discount: float = 0.99
    gae_lambda: float = 0.95
    advantages: Literal["rollout", "minibatch", "raw"] = "rollout"
    """Normalised over all items of the rollout, or of each minibatch, on all ranks together; or left as they are."""
    scale_rewards: bool = False
    """Divide rewards by the running deviation of the discounted return (of the iterations before)."""
    target_kl: float | None = None
    """No further epoch once the mean KL of one passes this."""

    def __post_init__(self) -> None:
        refused = {
            "epochs": self.epochs < 1,
            "minibatches": self.minibatches < 1,
            "clip": not 0 < self.clip < math.inf,
            "value-clip": self.value_clip is not None and not 0 < self.value_clip < math.inf,
            "value-weight": not 0 <= self.value_weight < math.inf,
            "entropy-weight": not 0 <= self.entropy_weight < math.inf,
            "discount": not 0 <= self.discount <= 1,
            "gae-lambda": not 0 <= self.gae_lambda <= 1,
            "target-kl": self.target_kl is not None and not self.target_kl > 0,
        }
        for name, bad in refused.items():
            if bad:
                found = "counts are 1 or more, discount and lambda lie in 0..1, clips and weights are not negative"
                raise UserError(f"--ppo.{name} {getattr(self, name.replace('-', '_'))}", found, "give one that is")
