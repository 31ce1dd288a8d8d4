"""The games of a cycle: of the present net with itself, and with Stockfish at fixed nodes.

Games 0 to n - 1 are the net's own, the others are against Stockfish; in even ones of these the net has white.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from ranks.chess.players.player import Forfeit, Limits, Player
from ranks.engine.sharding import rng
from ranks.errors import UserError
from ranks.workloads.chess_value.config import PlayConfig
from ranks.workloads.chess_value.games.game import FinishedGame, GameSide, OpeningNoise, play_game
from ranks.workloads.chess_value.tasks.pool import TaskPool

ATTEMPTS = 2
"""Of a game whose engine died or hung; then the run ends."""


class CycleGames(NamedTuple):
    """The games of a cycle in the order of their numbers."""

    games: list[FinishedGame]
    own: int
    """How many of them, the first ones, the net played with itself."""
    nodes: int
    """That the net searched."""


@dataclass(frozen=True)
class GamePlan:
    """What all games of a cycle have in common."""

    cfg: PlayConfig
    own: int
    against_stockfish: int
    cycle: int
    seed: int
    open_net: Callable[[], Player]
    """The present net's player."""
    open_rung: Callable[[int], Player]
    """Stockfish with these nodes for each move."""

    @property
    def games(self) -> int:
        """Of both kinds."""
        return self.own + self.against_stockfish

    def rung(self, game: int) -> int | None:
        """Nodes of the Stockfish opponent; None in an own game."""
        number = game - self.own
        return None if number < 0 else self.cfg.rungs[number // 2 % len(self.cfg.rungs)]

    def noise(self, game: int) -> OpeningNoise:
        """The random numbers of a game."""
        key, item = rng.key(self.seed, "value/games", self.cycle), torch.tensor([game])
        random_D = rng.uniform(key, item, 1 + 2 * self.cfg.max_plies)[0].numpy()
        plies = int(random_D[0] * (self.cfg.opening_plies + 1))
        return OpeningNoise(plies, self.cfg.random_share, random_D[1:].reshape(-1, 2))


def play_cycle(plan: GamePlan, pool: TaskPool) -> CycleGames:
    """Play the games of a cycle, spread over the ranks. Every rank calls it and gets all games.

    Raises Stopped if a stop was requested; UserError where an engine fails twice in the same game."""
    played = pool.map("games", plan.games, partial(GameWorker, plan), in_processes=True)
    return CycleGames(played, plan.own, sum(game.nodes for game in played))


class GameWorker:
    """Plays games, one after the other, with players of its own."""

    def __init__(self, plan: GamePlan) -> None:
        self._plan = plan
        self._net: Player | None = None
        self._rungs: dict[int, Player] = {}

    def run(self, task: int, stopping: Callable[[], bool]) -> FinishedGame:
        plan, rung = self._plan, self._plan.rung(task)
        if self._net is None:
            self._net = plan.open_net()
        net = GameSide(self._net, Limits(), counts=True)
        for attempt in range(ATTEMPTS):
            other = net if rung is None else GameSide(self._rung(rung), Limits(), counts=False)
            sides = (net, other) if (task - plan.own) % 2 == 0 else (other, net)
            try:
                return play_game(*sides, plan.noise(task), plan.seed + task, stopping)
            except Forfeit as fault:
                if attempt == ATTEMPTS - 1:
                    asked = f"game {task} of cycle {plan.cycle + 1} against Stockfish with {rung} nodes"
                    do = "start the engine by hand: type its name, then uci; or train with --stockfish-games 0"
                    raise UserError(asked, f"the engine {fault}", do) from fault
        raise AssertionError

    def close(self) -> None:
        for player in (*([self._net] if self._net else []), *self._rungs.values()):
            player.close()

    def _rung(self, nodes: int) -> Player:
        if nodes not in self._rungs:
            self._rungs[nodes] = self._plan.open_rung(nodes)
        return self._rungs[nodes]


def results_of(games: Sequence[FinishedGame]) -> dict[str, float]:
    """Numbers of games by result, and their mean length."""
    results = np.array([game.result for game in games], np.int64)
    lengths = [len(game.moves) for game in games]
    return {
        "games": float(len(games)),
        "white_won": float((results == 1).sum()),
        "drawn": float((results == 0).sum()),
        "black_won": float((results == -1).sum()),
        "cut": float((results == 2).sum()),
        "mean_length": sum(lengths) / max(len(games), 1),
    }
