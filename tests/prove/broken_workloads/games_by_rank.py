"""The tic-tac-toe toy, broken on purpose: the random moves of a game depend on the rank that plays it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "toys"))
import tictactoe
from tictactoe import Config, build, evaluate

from ranks import Summary, World
from ranks.selfplay import SelfPlay

SHAPE = "self-play"
__all__ = ["SHAPE", "Config", "build", "evaluate", "train"]


class GamesByRank(SelfPlay):
    def play(self, *args: object) -> object:  # type: ignore[override]
        self._slots.seed = self.world.seed + self.world.rank
        return super().play(*args)  # type: ignore[arg-type]


def train(cfg: Config, world: World) -> Summary:
    tictactoe.SelfPlay = GamesByRank
    return tictactoe.train(cfg, world)
