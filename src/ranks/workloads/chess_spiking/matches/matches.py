"""The matches of a run, and its best weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from ranks.engine.distributed.world import World
from ranks.engine.runs.kept.kept_files import KeptFiles
from ranks.engine.update.load_weights import load_weights
from ranks.selfplay import Encoding
from ranks.selfplay.snapshots import arrays_as_weights, weights_as_arrays
from ranks.workloads.chess_spiking.matches.games import play_games
from ranks.workloads.chess_spiking.matches.plan import BEST, EVALUATION_SEED, TRAINING_SEED, EvaluationPlan, MatchConfig
from ranks.workloads.chess_spiking.matches.rating import NET, Pair, fit_ratings, metrics_of, pairs_of


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
        """`best`: another net of the same kind, for the best weights; it moves to the device of `net`."""
        self.net, self.best, self.encoding, self.world = net, best.to(next(net.parameters())), encoding, world
        self.match = match
        self.times_replaced = 0
        """How often newest weights have become the best."""
        self.checkpoint_score: float | None = None
        """The score of a checkpoint of the newest weights, lower is better; None unless they became the best."""
        self._kept = KeptFiles(world, BEST)
        self._pairs_of_best: list[Pair] = []

    def play(self, iteration: int) -> dict[str, float]:
        """A match of the newest weights. Returns metrics, see `metrics_of`, and `best_iteration`: the finished
        iterations of the best weights after it.

        Every rank calls it inside the loop, after the iteration's last update. Raises Stopped if a stop was
        requested; UserError where the disk is full.
        """
        self.world.session.drain()
        best = self.best if self._kept.files else None
        plan = EvaluationPlan.make(self.match.games, TRAINING_SEED, best=best is not None)
        results = play_games(plan, self.net, best, self.encoding, self.match, self.world)
        pairs = pairs_of(plan, results)
        ratings = fit_ratings(pairs, self._pairs_of_best)
        is_better = best is None or (ratings is not None and ratings.difference(NET, BEST).value > 0)
        self.checkpoint_score = None
        if is_better:
            self._replace_best(iteration, [pair for pair in pairs if pair.opponent != BEST])
        best_iteration = float(self._kept.files[0].iteration + 1)
        return {**metrics_of(plan, results, ratings), "best_iteration": best_iteration}

    def _replace_best(self, iteration: int, pairs: list[Pair]) -> None:
        """The newest weights are the best from now on."""
        self._kept.write(iteration, weights_as_arrays(self.net) if self.world.rank == 0 else {})
        for older in self._kept.files[:-1]:
            self._kept.drop(older)
        load_weights(self.best, self.net.state_dict())
        self._pairs_of_best = pairs
        self.times_replaced += 1
        self.checkpoint_score = -float(self.times_replaced)

    def state_dict(self) -> dict[str, Any]:
        pairs = [[*pair] for pair in self._pairs_of_best]
        return {"best": self._kept.state_dict(), "pairs_of_best": pairs, "times_replaced": self.times_replaced}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._kept.load_state_dict(state["best"])
        self._pairs_of_best = [Pair(*pair) for pair in state["pairs_of_best"]]
        self.times_replaced = state["times_replaced"]
        for file in self._kept.files:  # one, or none before the first match
            load_weights(self.best, arrays_as_weights(self._kept.open(file)))


def evaluate_by_matches(model: nn.Module, encoding: Encoding, match: MatchConfig, world: World) -> dict[str, float]:
    """A match against the fixed players alone, with other openings than in training. Every rank calls it."""
    plan = EvaluationPlan.make(match.games, EVALUATION_SEED, best=False)
    results = play_games(plan, model, None, encoding, match, world)
    return metrics_of(plan, results, fit_ratings(pairs_of(plan, results), []))
