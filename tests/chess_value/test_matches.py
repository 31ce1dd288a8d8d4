"""Matches inside training: forfeits are no results, and which weights are the best."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn

from ranks.chess.board import Board
from ranks.chess.match.net_rating import NET, Pair
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.errors import UserError
from ranks.workloads.chess_value.config import Config, LabelConfig, RatingConfig, ValueNetConfig
from ranks.workloads.chess_value.matches import matches
from ranks.workloads.chess_value.matches.budget import (
    PASS_NODES,
    cost_of_node,
    multiplications,
    nodes_of_labels,
)
from ranks.workloads.chess_value.matches.matches import (
    PAIRS_OF_A_ROUND,
    RUNG_NODES,
    MatchRules,
    SprtResult,
    ValueMatches,
)
from ranks.workloads.chess_value.matches.pairs import Opponents, PairPlan, PairWorker, PlayedPair, openings
from ranks.workloads.chess_value.net.building import build_net


class FirstMove:
    """Plays the first legal move, or forfeits; a test sees how many of them there were."""

    def __init__(self, name: str, forfeits: bool) -> None:
        self.name, self._forfeits = name, forfeits

    def new_game(self, seed: int) -> None:
        pass

    def choose(self, board: Board, limits: Limits) -> Choice:
        if self._forfeits:
            raise Forfeit("died")
        return Choice(board.legal_moves()[0], nodes=3 if self.name == NET else 7)

    def close(self) -> None:
        pass


def worker(forfeits: list[bool]) -> PairWorker:
    """A pair with an opponent that is opened again after a forfeit."""
    opened = iter(forfeits)
    players = {NET: lambda: FirstMove(NET, False), "other": lambda: FirstMove("other", next(opened))}
    return PairWorker([PairPlan("other", openings(3, 1)[0], 0)], Opponents(players, max_plies=20))


def test_a_game_whose_engine_dies_is_played_again_and_never_a_win() -> None:
    played = worker([True, False]).run(0, lambda: False)
    assert (played.pair.with_white, played.pair.with_black) == (1, 1), "cut at 20 plies, so drawn"
    with pytest.raises(UserError, match=r"ended twice without a result: .*died"):
        worker([True, True]).run(0, lambda: False)


class Best:
    """In place of kept files: after which cycle the best weights were the newest."""

    def __init__(self, iteration: int | None) -> None:
        self.iteration, self.net, self.results = iteration, None, list[Pair]()

    def keep(self) -> None:
        pass

    def replace(self, cycle: int, pairs: list[Pair]) -> None:
        self.iteration = cycle + 1


def matches_with(
    left: float, *, whole: float = 0.0, cost_of_node: int = 1, best: bool = False, cfg: RatingConfig | None = None
) -> Any:
    """Matches whose budget has these nodes, with or without best weights of the first cycle."""
    mine: Any = ValueMatches.__new__(ValueMatches)
    mine.cfg, mine._cost = cfg or RatingConfig(rung_games=40, nodes=2000, share=0.5), cost_of_node
    mine.budget = SimpleNamespace(worked=0, left=left, whole=whole, spent=0)
    mine.best, mine.net, mine.rating = Best(1 if best else None), None, None
    mine.world = SimpleNamespace(session=SimpleNamespace(drain=lambda: None, timed=lambda part: nullcontext()))
    return mine


@pytest.mark.parametrize(("last", "cycles"), [(False, [6, 1, 1]), (True, [6, 6, 1])])
def test_undecided_keeps_the_best_but_not_at_the_end(
    last: bool, cycles: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ValueMatches, "_rate", lambda self, games, pool: [])
    for result, cycle in zip(["H1", None, "H0"], cycles, strict=True):
        monkeypatch.setattr(ValueMatches, "_test", lambda self, *given, r=result: SprtResult([], r, 0.0))
        metrics = matches_with(inf, best=True).play(5, 1, 1, last=last)
        assert metrics["best_cycle"] == cycle
        assert (metrics["replaced"], metrics["accepted"]) == (float(cycle == 6), float(result == "H1"))


def test_the_last_test_asks_whether_the_newest_are_worse() -> None:
    cfg = RatingConfig(elo0=-5, elo1=10)
    usual, last = MatchRules.usual(cfg), MatchRules.last(cfg, 8)
    assert (usual.sprt.elo0, usual.sprt.elo1, usual.rung_games) == (-5, 10, 40)
    assert (last.sprt.elo0, last.sprt.elo1, last.rung_games) == (-10, 5, 8)
    for elo0, elo1 in ((0.0, 0.0), (0.0, inf), (-inf, 0.0)):
        with pytest.raises(UserError, match="elo0 must be below elo1, and both are numbers"):
            RatingConfig(elo0=elo0, elo1=elo1)
    MatchRules.last(RatingConfig(elo0=-5, elo1=0), 8)  # non-regression


def test_a_match_waits_for_the_nodes_of_a_whole_one_except_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ValueMatches, "_play", lambda self, cycle, rules, pool: {"played": 1.0})
    first = 40 * 45 * (2000 + RUNG_NODES)
    assert matches_with(first - 1).play(0, 1, 1) == {}
    later = first + 2 * 200 * 45 * 2000
    assert matches_with(later - 1, best=True).play(0, 1, 1) == {}
    costly = 40 * 45 * (500 * 2000 + RUNG_NODES)
    assert matches_with(costly - 1, cost_of_node=500).play(0, 1, 1) == {}, "forward passes"
    assert matches_with(first).play(0, 1, 1) == matches_with(later, best=True).play(0, 1, 1) == {"played": 1.0}
    assert matches_with(0.0).play(0, 1, 1, last=True) == {"played": 1.0}


def test_the_last_match_has_the_games_that_all_nodes_of_the_run_pay_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a pair with each of the four fixed players, and one pair of the test."""
    of_a_game = 45 * (500 * 2000 + RUNG_NODES)
    rated: list[int] = []
    tested: list[int] = []

    def play_all(plans: list[PairPlan], opponents: Opponents, pool: Any) -> list[PlayedPair]:
        tested.append(len(plans))
        return [PlayedPair(Pair(plan.opponent, 1, 1), 100, 5, 7) for plan in plans]

    monkeypatch.setattr(matches, "play_all", play_all)
    monkeypatch.setattr(ValueMatches, "_rate", lambda self, games, pool: rated.append(games) or [])
    monkeypatch.setattr(ValueMatches, "_player_of", lambda self, net: None)
    cfg = RatingConfig(rung_games=40, nodes=2000, games=2 * PAIRS_OF_A_ROUND)
    for whole, left, test_games in ((20.5, 0.0, 2.0), (0.0, -5.0, 2.0), (99.0, 1.0, 2.0 * PAIRS_OF_A_ROUND)):
        mine = matches_with(left, whole=whole * of_a_game, cost_of_node=500, best=True, cfg=cfg)
        metrics = mine.play(1, 1, 1, last=True)
        assert (metrics["test_games"], metrics["test_score"]) == (test_games, 0.5)
        assert mine.budget.spent == 500 * 12 * test_games / 2
    assert rated == [20, 8, 40]
    assert tested == [1, 1, PAIRS_OF_A_ROUND]


def test_the_nodes_of_both_sides_are_counted() -> None:
    played = worker([False]).run(0, lambda: False)
    assert (played.nodes, played.other_nodes) == (3 * played.plies / 2, 7 * played.plies / 2)


def test_labels_cost_what_is_searched_cached_or_not() -> None:
    def cost(limit: str, **settings: Any) -> int:
        return nodes_of_labels(replace(Config(), label=LabelConfig(limit=limit), **settings), 10, by_net=True)

    assert [cost(limit) for limit in ("nodes:1000", "depth:4", "static")] == [20_000, 11_600, 2_000]
    assert cost("nodes:1000", labels="outcome") == 0
    assert [cost(limit, labels="search") for limit in ("nodes:1000", "depth:4")] == [10_000, 1_600]
    cnn = replace(Config(), labels="search", net=ValueNetConfig("cnn"))
    assert nodes_of_labels(cnn, 10, by_net=True) == 10_000 * cost_of_node(cnn.net)
    assert nodes_of_labels(cnn, 10, by_net=False) == 10_000, "the tables label before the first update"


@pytest.mark.parametrize("cfg", [ValueNetConfig("cnn"), ValueNetConfig("resnet", blocks=2)])
def test_a_node_of_a_tree_search_costs_a_forward_pass(cfg: ValueNetConfig) -> None:
    net = build_net(cfg)
    layers = [module.weight for module in net.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    exact = sum(weight.numel() * (64 if weight.ndim == 4 else 1) for weight in layers)
    assert multiplications(cfg) == pytest.approx(exact, rel=0.02)
    assert cost_of_node(cfg) > PASS_NODES > 100 * cost_of_node(ValueNetConfig())
