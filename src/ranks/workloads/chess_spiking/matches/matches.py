"""The matches of a run, and its best weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from ranks.engine.distributed.agree import on_first_rank
from ranks.engine.distributed.world import World
from ranks.selfplay import Encoding
from ranks.selfplay.best_weights import BestWeights
from ranks.workloads.chess_spiking.matches.games import check_trees_of, play_games
from ranks.workloads.chess_spiking.matches.plan import BEST, EVALUATION_SEED, TRAINING_SEED, EvaluationPlan, MatchConfig
from ranks.workloads.chess_spiking.matches.rating import NET, Pair, fit_ratings, metrics_of, pairs_of

TIE_ELO = 1e-6
"""A smaller difference of two ratings is none."""


class Matches:
    """Plays the newest weights against the best so far and the fixed players.

        matches = Matches(net, best, encoding, match, world)
        with Run.open(cfg, world, keep=dict(learner=learner, ..., matches=matches)) as run:
            ...
            run.log(matches.play(iteration), prefix="match")
            run.save(score=matches.checkpoint_score)

    The newest weights become the best where one fit over the games of both rates them higher; the first ones
    do without a comparison. The best weights are a kept file of the run.
    """

    def __init__(
        self,
        net: nn.Module,
        best: nn.Module,
        encoding: Encoding,
        match: MatchConfig,
        world: World,
    ) -> None:
        """`best`: another net of the same kind, for the best weights; it moves to the device of `net`. Raises UserError
        where the trees of a match do not fit into the memory. Every rank calls it."""
        self.net, self.encoding, self.match, self.world = net, encoding, match, world
        self.best = BestWeights(net, best, Pair, world)
        self._whole_plan = EvaluationPlan.make(match.games, TRAINING_SEED, best=True)
        check_trees_of(self._whole_plan, match, world)

    @property
    def checkpoint_score(self) -> float | None:
        """The score of a checkpoint of the newest weights, lower is better; None unless they became the best."""
        return self.best.checkpoint_score

    def play(self, iteration: int) -> dict[str, float]:
        """A match of the newest weights. Returns metrics, see `metrics_of`, and `best_iteration`: the finished
        iterations of the best weights after it.

        Every rank calls it inside the loop, after the iteration's last update. Raises Stopped if a stop was
        requested; UserError where the disk is full.
        """
        self.world.session.drain()
        is_first = self.best.iteration is None
        plan = EvaluationPlan.make(self.match.games, TRAINING_SEED, best=not is_first)
        best_net = None if is_first else self.best.net
        if is_first and (missing := self._whole_plan.without_games):
            least = 2 * len(self._whole_plan.opponents)
            text = f"matches of {self.match.games} games have none with {', '.join(missing)}"
            self.world.session.warn(f"{text}: give --eval-games {least} or more")
        results = play_games(plan, self.net, best_net, self.encoding, self.match, self.world)
        pairs = pairs_of(plan, results)
        ratings = fit_ratings(pairs, self.best.results)
        # One rank decides: on hosts with other CPUs the last bits of a fit may differ, and with them the sign of a tie.
        gained = None if is_first or ratings is None else ratings.difference(NET, BEST).value
        if on_first_rank(self.world, lambda: is_first or (gained is not None and gained > TIE_ELO)):
            self.best.replace(iteration, [pair for pair in pairs if pair.opponent != BEST])
        else:
            self.best.keep()
        assert self.best.iteration is not None
        return {**metrics_of(plan, results, ratings), "best_iteration": float(self.best.iteration)}

    def state_dict(self) -> dict[str, Any]:
        return self.best.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.best.load_state_dict(state)


def evaluate_by_matches(model: nn.Module, encoding: Encoding, match: MatchConfig, world: World) -> dict[str, float]:
    """A match against the fixed players alone, with other openings than in training. Every rank calls it."""
    plan = EvaluationPlan.make(match.games, EVALUATION_SEED, best=False)
    results = play_games(plan, model, None, encoding, match, world)
    return metrics_of(plan, results, fit_ratings(pairs_of(plan, results), []))
