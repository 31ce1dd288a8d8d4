"""The matches of a run, its rating, and its best weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from torch import nn

from ranks.chess.match.net_rating import BEST, LADDER, NET, Pair, rate_nets
from ranks.engine.distributed.world import World
from ranks.rating.bradley_terry import Ratings
from ranks.rating.sprt import Sprt
from ranks.selfplay.best_weights import BestWeights
from ranks.workloads.chess_value.config import RatingConfig
from ranks.workloads.chess_value.matches.budget import NodeBudget
from ranks.workloads.chess_value.matches.pairs import Opponents, PairPlan, PlayedPair, openings, play_all
from ranks.workloads.chess_value.matches.rungs import AT_ONCE, nearest_rungs
from ranks.workloads.chess_value.players.net_player import OpenPlayer, open_net, plays_in_processes
from ranks.workloads.chess_value.tasks.pool import TaskPool

PAIRS_OF_A_ROUND = 10
"""The sequential test looks at the score after each pair; so many are played at a time, on all ranks together."""
MOVES_OF_A_GAME = 45
"""Of one side."""
RUNG_NODES = 2000
"""Of a move of a fixed player, about."""
RUNG_SEED, TEST_SEED, EVALUATION_SEED = 19, 20, 21
"""Of openings. `ranks evaluate` has others than training, where matches choose the best weights."""


class SprtResult(NamedTuple):
    """How a match with the best weights ended."""

    played: list[PlayedPair]
    accepted: str | None
    """H1: the newest weights are better; H0: they are not; None: undecided."""
    llr: float


class MatchRules(NamedTuple):
    """How a match is played, and what replaces the best weights."""

    rung_games: int
    sprt: Sprt
    """Of the newest weights against the best: H1 replaces them, H0 keeps them."""
    undecided_replaces: bool

    @classmethod
    def usual(cls, cfg: RatingConfig) -> MatchRules:
        """The newest weights have to be better."""
        return cls(cfg.rung_games, Sprt(cfg.elo0, cfg.elo1), undecided_replaces=False)

    @classmethod
    def last(cls, cfg: RatingConfig, rung_games: int) -> MatchRules:
        """The newest weights, for which the learning rate has fallen, must not be worse: the test of the best weights
        against them."""
        return cls(rung_games, Sprt(-cfg.elo1, -cfg.elo0), undecided_replaces=True)


class ValueMatches:
    """Plays the newest weights against fixed players, and in a sequential test against the best weights so far.

        matches = ValueMatches(net, best, rungs, cfg.rating, world)
        with Run.open(cfg, world, keep=dict(learner=learner, ..., matches=matches)) as run:
            ...
            run.log(matches.play(cycle, nodes, pool), prefix="match")
            run.save(score=matches.checkpoint_score)

    The newest weights become the best where the test accepts them; the first ones do without a test, and the last ones
    unless they are worse. The best weights are a kept file of the run.
    """

    def __init__(
        self,
        net: nn.Module,
        best: nn.Module,
        rungs: Mapping[str, OpenPlayer],
        cfg: RatingConfig,
        world: World,
        cost_of_node: int = 1,
    ) -> None:
        """`best`: another net of the same kind, for the best weights; it moves to the device of `net`. `rungs`: players
        of LADDER. `cost_of_node`: of the nets, see `budget`."""
        self.net, self.world, self.cfg = net, world, cfg
        self.best = BestWeights(net, best, Pair, world)
        self.budget = NodeBudget(cfg.share)
        self.rating: float | None = None
        """Of the newest weights, after the last match."""
        self._rungs, self._cost = rungs, cost_of_node

    @property
    def checkpoint_score(self) -> float | None:
        """The score of a checkpoint of the newest weights, lower is better; None unless they became the best."""
        return self.best.checkpoint_score

    def play(self, cycle: int, worked_nodes: int, pool: TaskPool, *, last: bool = False) -> dict[str, float]:
        """The match of a cycle in which games, labels and updates took the time of `worked_nodes`. Returns metrics;
        none where the nodes that are left do not pay for a match.

        `last`: of the run's last cycle, in which the learning rate has fallen. There is a match in any case, and the
        newest weights become the best unless the test finds them worse. Where the nodes of all matches of the run do
        not pay for its rated games, there are fewer, and the test has one pair at least.

        Every rank calls it inside the loop, after the cycle's last update. Raises Stopped if a stop was requested;
        UserError where the disk is full.
        """
        self.best.keep()
        self.budget.worked += worked_nodes
        if self.budget.left < self._usual_nodes and not last:
            return {}
        rules = MatchRules.last(self.cfg, self._paid_rung_games()) if last else MatchRules.usual(self.cfg)
        self.world.session.drain()
        with self.world.session.timed("evaluation"):
            return self._play(cycle, rules, pool)

    @property
    def _usual_nodes(self) -> int:
        """Of the rated games, and of the whole test, in which both sides are nets: a test that ends for want of nodes
        decides nothing, and the next one begins at zero."""
        tested = 2 * self.cfg.games if self.best.iteration is not None else 0
        return self.cfg.rung_games * self._nodes_of_rung_game + tested * MOVES_OF_A_GAME * self._cost * self.cfg.nodes

    @property
    def _nodes_of_rung_game(self) -> int:
        return MOVES_OF_A_GAME * (self._cost * self.cfg.nodes + RUNG_NODES)

    def _play(self, cycle: int, rules: MatchRules, pool: TaskPool) -> dict[str, float]:
        rated = self._rate(rules.rung_games, pool)
        tested = None if self.best.iteration is None else self._test(rules.sprt, cycle, pool)
        pairs = [played.pair for played in rated]
        against_best = [] if tested is None else [played.pair for played in tested.played]
        ratings = rate_nets([*pairs, *against_best], self.best.results, LADDER)
        if ratings is not None:
            self.rating = ratings.rating(NET).value
        replaces = tested is None or tested.accepted == "H1" or (rules.undecided_replaces and tested.accepted is None)
        if replaces:
            self.best.replace(cycle, pairs)
        metrics = rating_metrics(rated, ratings) | {"replaced": float(replaces)}
        if tested is not None:
            metrics |= {
                "test_games": 2.0 * len(tested.played),
                "test_score": score_of_pairs(against_best),
                "test_llr": tested.llr,
                "accepted": float(tested.accepted == "H1"),
            }
        assert self.best.iteration is not None
        return metrics | {"best_cycle": float(self.best.iteration)}

    def _paid_rung_games(self) -> int:
        """As many as the nodes of all matches pay for, and a pair with each fixed player at least."""
        whole = self.budget.whole / self._nodes_of_rung_game
        return int(min(self.cfg.rung_games, max(2 * AT_ONCE, whole)))

    def _rate(self, games: int, pool: TaskPool) -> list[PlayedPair]:
        """Pairs with the fixed players that are nearest in strength, each with the same openings."""
        words = nearest_rungs(self.rating, self._rungs)
        players = {NET: self._player_of(self.net), **{word: self._rungs[word] for word in words}}
        plans = rung_plans(words, games, RUNG_SEED)
        played = play_all(plans, self._opponents(players), pool)
        self.budget.spent += sum(self._cost * each.nodes + each.other_nodes for each in played)
        return played

    def _opponents(self, players: Mapping[str, OpenPlayer]) -> Opponents:
        return Opponents(players, self.cfg.max_plies, in_processes=plays_in_processes(self.net))

    def _player_of(self, net: nn.Module) -> OpenPlayer:
        return open_net(net, NET, self.cfg.nodes)

    def _test(self, sprt: Sprt, cycle: int, pool: TaskPool) -> SprtResult:
        """The sequential test against the best weights, in rounds as long as it is undecided and nodes are left; where
        none are left at its begin, one pair."""
        opponents = self._opponents({NET: self._player_of(self.net), BEST: self._player_of(self.best.net)})
        lines = openings(TEST_SEED, -(-self.cfg.games // 2))
        plans = [PairPlan(BEST, line, 1_000_003 * cycle + 4 * pair) for pair, line in enumerate(lines)]
        counts, taken, llr = [0] * 5, list[PlayedPair](), 0.0
        for first in range(0, len(plans), PAIRS_OF_A_ROUND):
            paid = self.budget.left > 0
            if taken and not paid:
                break
            played = play_all(plans[first:][: PAIRS_OF_A_ROUND if paid else 1], opponents, pool)
            self.budget.spent += self._cost * sum(each.nodes + each.other_nodes for each in played)
            for each in played:
                taken.append(each)
                counts[each.pair.with_white + each.pair.with_black] += 1
                verdict = sprt.verdict(counts)
                llr = verdict.llr
                if verdict.accepted:
                    return SprtResult(taken, verdict.accepted, llr)
        return SprtResult(taken, None, llr)

    def state_dict(self) -> dict[str, Any]:
        budget = {"worked": self.budget.worked, "spent": self.budget.spent}
        return {"best": self.best.state_dict(), "rating": self.rating, **budget}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.best.load_state_dict(state["best"])
        self.rating = state["rating"]
        self.budget.worked, self.budget.spent = state["worked"], state["spent"]


def rung_plans(words: Sequence[str], games: int, seed: int) -> list[PairPlan]:
    """Pairs that go round the opponents, so that each has the same openings."""
    count = -(-games // 2)
    lines = openings(seed, -(-count // len(words)))
    return [
        PairPlan(words[pair % len(words)], lines[pair // len(words)], 1_000_003 * seed + 4 * pair)
        for pair in range(count)
    ]


def rating_metrics(rated: Sequence[PlayedPair], ratings: Ratings | None) -> dict[str, float]:
    """The rating with its 95 % interval, the score against each opponent (won 1, drawn 1/2), games and their length."""
    metrics: dict[str, float] = {}
    if ratings is not None:
        rating = ratings.rating(NET)
        metrics = {"rating": rating.value, "rating_low": rating.low, "rating_high": rating.high}
    for opponent in dict.fromkeys(each.pair.opponent for each in rated):
        mine = [each.pair for each in rated if each.pair.opponent == opponent]
        metrics[f"score_{metric_name(opponent)}"] = score_of_pairs(mine)
    games = 2 * len(rated)
    return metrics | {"games": float(games), "mean_length": sum(each.plies for each in rated) / max(games, 1)}


def metric_name(opponent: str) -> str:
    """uci:stockfish@1000?Threads=1 -> stockfish-1000."""
    return opponent.removeprefix("uci:").partition("?")[0].replace(":", "-").replace("@", "-")


def score_of_pairs(pairs: Sequence[Pair]) -> float:
    """Points of the net for a game, from 0 to 1."""
    return sum(pair.with_white + pair.with_black for pair in pairs) / max(4 * len(pairs), 1)
