"""The cart pole toy, broken on purpose: the random numbers of an environment depend on its rank."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "toys"))
import cartpole
from cartpole import Config, build, evaluate

from ranks import Summary, World, rng

__all__ = ["Config", "build", "evaluate", "train"]
SHAPE = "on-policy"
right_key = rng.key


def train(cfg: Config, world: World) -> Summary:
    def key(seed: int, purpose: str, step: int) -> int:
        return right_key(seed, f"{purpose}/{world.rank}" if purpose in ("act", "reset") else purpose, step)

    rng.key = key
    return cartpole.train(cfg, world)
