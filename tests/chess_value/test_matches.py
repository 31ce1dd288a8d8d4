"""Matches inside training: forfeits are no results, and which weights are the best."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ranks.chess.board import Board
from ranks.chess.match.net_rating import NET
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.errors import UserError
from ranks.workloads.chess_value.config import RatingConfig
from ranks.workloads.chess_value.matches import matches
from ranks.workloads.chess_value.matches.budget import nodes_of_label
from ranks.workloads.chess_value.matches.matches import PAIRS_OF_A_ROUND, SprtResult, ValueMatches
from ranks.workloads.chess_value.matches.pairs import Opponents, PairPlan, PairWorker, openings


class FirstMove:
    """Plays the first legal move, or forfeits; a test sees how many of them there were."""

    def __init__(self, name: str, forfeits: bool) -> None:
        self.name, self._forfeits = name, forfeits

    def new_game(self, seed: int) -> None:
        pass

    def choose(self, board: Board, limits: Limits) -> Choice:
        if self._forfeits:
            raise Forfeit("died")
        return Choice(board.legal_moves()[0])

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


@pytest.fixture
def value_matches(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[bool]]:
    """Whether the newest weights became the best after each of some tests."""

    def replaced(results: list[str | None], *, last: bool) -> list[bool]:
        found: list[bool] = []
        kept = SimpleNamespace(files=[SimpleNamespace(iteration=0)])
        mine: Any = ValueMatches.__new__(ValueMatches)
        mine.cfg, mine.rating, mine._kept, mine._pairs_of_best = RatingConfig(), None, kept, []
        monkeypatch.setattr(ValueMatches, "_rate", lambda self, threads: [])
        monkeypatch.setattr(matches, "rating_metrics", lambda rated, ratings: {})
        monkeypatch.setattr(matches, "score_of_pairs", lambda pairs: 0.5)
        monkeypatch.setattr(ValueMatches, "_replace_best", lambda self, cycle, pairs: found.append(True))
        for result in results:
            monkeypatch.setattr(ValueMatches, "_test", lambda self, *given, r=result: SprtResult([], r, 0.0))
            before = len(found)
            metrics = mine._play(1, 1, last)
            found += [] if len(found) > before else [False]
            assert metrics["accepted"] == float(found[-1])
        return found

    return replaced


def test_undecided_keeps_the_best_but_not_at_the_end(value_matches: Callable[..., list[bool]]) -> None:
    assert value_matches(["H1", None, "H0"], last=False) == [True, False, False]
    assert value_matches(["H1", None, "H0"], last=True) == [True, True, False]


def test_a_match_waits_for_the_nodes_of_a_whole_one_except_the_last() -> None:
    mine: Any = ValueMatches.__new__(ValueMatches)
    mine.cfg = RatingConfig(rung_games=40, nodes=2000, share=0.5)
    mine.budget = SimpleNamespace(worked=0, left=0.0)
    mine._kept = SimpleNamespace(files=[])
    mine.world = SimpleNamespace(session=SimpleNamespace(drain=lambda: None, timed=lambda part: pytest.fail("played")))
    mine.budget.left = 40 * 45 * 2000 - 1
    assert mine.play(0, 1, 1) == {}
    mine._kept.files = ["a net"]
    mine.budget.left = (40 + 4 * PAIRS_OF_A_ROUND) * 45 * 2000 - 1
    assert mine.play(0, 1, 1) == {}
    with pytest.raises(pytest.fail.Exception, match="played"):
        mine.play(0, 1, 1, last=True)


def test_a_label_costs_what_the_engine_needs_to_forget_and_its_nodes() -> None:
    assert [nodes_of_label(limit) for limit in ("nodes:1000", "depth:4")] == [2000, 1160]
