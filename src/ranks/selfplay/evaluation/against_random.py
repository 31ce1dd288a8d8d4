"""How well a net plays against random moves: the first thing to know of a game of one's own.

Legend: P the games of one batch, or some of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranks.engine.distributed.world import World
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.update.evaluate import eval_mode
from ranks.errors import UserError
from ranks.rating.elo import estimate
from ranks.search.config import SearchConfig
from ranks.search.evaluation import BoolArray, Evaluator, Float64Array
from ranks.search.game import Game
from ranks.search.result import likeliest_moves
from ranks.search.search import Search
from ranks.selfplay.checks.memory import check_memory
from ranks.selfplay.checks.trees import check_trees
from ranks.selfplay.config import SelfPlayConfig
from ranks.selfplay.evaluation.rounds import games_of_batches, play_rounds, rows_of
from ranks.selfplay.net.encoding import Encoding
from ranks.selfplay.net.net_evaluator import NetEvaluator
from ranks.selfplay.random import MOVE, uniform
from ranks.selfplay.search_settings import match_search

OTHER_SEED = 1_000_003
"""Added to the run's seed: the random moves of an evaluation have nothing to do with training."""


def score_against_random(
    net: Any, game: Game, encoding: Encoding, games: int, cfg: SelfPlayConfig, world: World
) -> dict[str, float]:
    """The net against uniformly random moves, with the search of its self-play without noise.

    With search `none` it plays the likeliest move. It begins in every second game. Returns `score` (won 1,
    drawn 1/2, lost 0; a game of `cfg.max_plies` counts as drawn) with its 95 % interval from `score_low` to
    `score_high`, and the shares won, drawn and lost. With
    --exact the games of each shard are one batch, so the result has the same bits on any number of ranks.
    Every rank calls it. Raises Stopped inside a long iteration if a stop was requested; UserError where
    `games` is below 1, or their trees do not fit into the memory.
    """
    if games < 1:
        raise UserError(f"{games} games of an evaluation", "an evaluation plays at least one", "give 1 or more")
    with world.session.timed("evaluation"), eval_mode(net, world):
        evaluator = NetEvaluator(net, game, encoding, world.device, "in games against random moves")
        mine = games_of_batches(games, world)
        slots, simulations = sum(map(len, mine)), 0 if cfg.search == "none" else cfg.simulations
        search = match_search(cfg, simulations)
        check_memory(game, slots, rows_of(slots), search, world, "games of an evaluation")
        batches = [
            GamesAgainstRandom(game, ids, search, simulations, cfg.max_plies, evaluator, world.seed) for ids in mine
        ]
        play_rounds(batches, "evaluation", world)
        outcomes = np.concatenate([np.zeros(0), *(batch.outcomes() for batch in batches)])
        every = np.concatenate(world.comm.gather_objects(outcomes))
    world.check_stop()
    lost, drawn, won = (int((every == outcome).sum()) for outcome in (-1, 0, 1))
    score = estimate([lost, drawn, won]).score
    shares = {"won": won / games, "drawn": drawn / games, "lost": lost / games}
    return {"score": score.value, "score_low": score.low, "score_high": score.high, **shares}


class GamesAgainstRandom:
    """Games whose positions are evaluated in one batch."""

    def __init__(
        self,
        game: Game,
        ids: range,
        search: SearchConfig,
        simulations: int,
        max_plies: int,
        evaluator: Evaluator,
        seed: int,
    ) -> None:
        """`simulations`: of a move of the net; 0: its likeliest move."""
        self.simulations, self.max_plies, self.ply = simulations, max_plies, 0
        self.search = Search(game, search, len(ids), groups=1)
        self.seed, self.game_P = seed + OTHER_SEED, np.arange(ids.start, ids.stop)
        self.evaluator = evaluator
        for slot, number in enumerate(ids):
            self.search.set_root(slot, number)

    def play_round(self) -> None:
        """Play the next move in each game that is not over; all of them have the same number of plies."""
        running_P, is_net_P = self.is_running(), (self.game_P + self.ply) % 2 == 0
        searching_P = np.flatnonzero(running_P & is_net_P)
        if len(searching_P):
            self.search.begin(searching_P, self.simulations)
            for _ in self.search.steps(self.evaluator):
                heartbeat.beat()
            result = self.search.result(searching_P)
            check_trees(self.search.game, self.search.trees, searching_P)
            self.search.play(result.chosen_P if self.simulations else likeliest_moves(result), searching_P)
        random_P = np.flatnonzero(running_P & ~is_net_P)
        chosen_P = uniform(self.seed, self.game_P[random_P], np.full(len(random_P), self.ply), MOVE)
        for slot, chosen in zip(random_P.tolist(), chosen_P.tolist(), strict=True):
            legal = self.search.legal_moves(slot)
            self.search.play([int(legal[int(chosen * len(legal))])], [slot])
        check_trees(self.search.game, self.search.trees, np.flatnonzero(running_P))
        self.ply += 1

    def is_running(self) -> BoolArray:
        """Which games are not over, and are not cut."""
        return np.isnan(self.search.outcome()) & (self.ply < self.max_plies)

    def outcomes(self) -> Float64Array:
        """How each game ended for the net; 0 where it is not over."""
        plies_P = self.search.trees.slots_G["ply"]
        to_move_P = np.where((self.game_P + plies_P) % 2 == 0, 1.0, -1.0)
        return np.nan_to_num(self.search.outcome() * to_move_P)
