"""When the engine ends its search: limits, settled choices and mates."""

from __future__ import annotations

from typing import Any

import pytest

from ranks.chess.board import Board
from ranks.chess.commands.players import make_player
from ranks.chess.engine import player as player_module
from ranks.chess.engine.search.deepening import NODES_AT_ONCE
from ranks.chess.engine.search.stopping import Progress, is_settled
from ranks.chess.players.player import Choice, Clock, Limits
from ranks.chess.players.time_plan import time_plan
from tests.chess.fake_clock import FakeClock
from tests.chess.positions import MATES
from tests.chess.uci.uci_conversation import Conversation

SMALL = "engine:tables?Hash=1"


def test_a_settled_choice_needs_less_time() -> None:
    limits = Limits(clock=Clock(60.0, 60.0))
    plan = time_plan(limits)
    steady = Progress(Choice(0, 10, depth=9), 30, steady=5, fallen_cp=0, best_share=0.9)
    elapsed_s = 0.5 * plan.enough_s
    assert is_settled(steady, limits, plan, elapsed_s)
    assert not is_settled(steady._replace(steady=0, best_share=0.3), limits, plan, elapsed_s)
    assert not is_settled(steady._replace(fallen_cp=80, steady=2), limits, plan, 0.9 * elapsed_s)
    assert is_settled(steady._replace(num_moves=1), limits, plan, 0.0)
    assert not is_settled(steady, Limits(movetime_s=1.0), time_plan(Limits(movetime_s=1.0)), 0.9)


@pytest.mark.parametrize(
    ("mate_in", "depth", "limits", "ends"),
    [
        (4, 8, Limits(clock=Clock(60.0, 60.0)), True),
        (-4, 8, Limits(clock=Clock(60.0, 60.0)), True),
        (4, 7, Limits(clock=Clock(60.0, 60.0)), False),
        (4, 8, Limits(clock=Clock(60.0, 60.0), multipv=2), False),
        (2, 9, Limits(movetime_s=1.0), True),
        (2, 9, Limits(nodes=1000), True),
        (2, 9, Limits(depth=20, nodes=1000), False),
        (1, 1, Limits(depth=20, nodes=1000), True),
        (-1, 2, Limits(movetime_s=1.0), True),
        (1, 9, Limits(infinite=True), False),
        (4, 1, Limits(mate=4, multipv=2), True),
        (5, 20, Limits(mate=4), False),
        (-2, 20, Limits(mate=4), False),
    ],
)
def test_which_mates_end_a_search(mate_in: int, depth: int, limits: Limits, ends: bool) -> None:
    progress = Progress(Choice(0, mate_in=mate_in, depth=depth), 30, steady=0, fallen_cp=0, best_share=0.5)
    assert is_settled(progress, limits, time_plan(limits), 0.0) == ends


@pytest.mark.parametrize("moves", [2, 3])
def test_a_search_for_a_mate_ends_with_it(moves: int) -> None:
    player = make_player(SMALL)
    for fen in MATES[moves]:
        player.new_game(0)
        assert player.choose(Board(fen), Limits(mate=moves)).mate_in == moves, fen


def test_go_mate_answers_when_the_mate_is_found_or_at_stop() -> None:
    with Conversation(lambda: make_player(SMALL)) as gui:
        gui.send(f"position fen {MATES[2][0]}")
        *infos, best = gui.ask("go mate 2", "bestmove")
        assert "score mate 2 " in infos[-1]
        assert best.startswith("bestmove a1a6")
        gui.send("position startpos")
        gui.send("go mate 1")
        gui.expect("info depth 6 ")
        gui.ask("stop", "bestmove")


def test_after_ponderhit_a_settled_choice_ends_the_search_as_on_the_clock() -> None:
    """White has one move. The clock does not move, so the search never uses up its time."""
    clock = FakeClock()
    with Conversation(lambda: make_player(SMALL), clock) as gui:
        gui.send("position fen 7k/6pp/8/8/8/8/6qP/7K w - - 0 1")
        gui.send("go ponder wtime 60000 btime 60000")
        gui.expect("info depth 3 ")
        gui.send("ponderhit")
        gui.expect("bestmove h1g2", 20)


def test_nodes_are_those_of_all_threads() -> None:
    """Each thread can be in a step while another one searches the last node."""
    player = make_player("engine:tables?Hash=1&Threads=4")
    assert 30_000 <= player.choose(Board(), Limits(nodes=30_000)).nodes < 30_000 + 4 * NODES_AT_ONCE


def test_a_score_that_becomes_a_mate_against_us_has_fallen(monkeypatch: pytest.MonkeyPatch) -> None:
    """White is mated in two moves, which the first depths do not see."""
    seen: list[Progress] = []

    def kept(progress: Progress, *arguments: Any) -> bool:
        seen.append(progress)
        return is_settled(progress, *arguments)

    monkeypatch.setattr(player_module, "is_settled", kept)
    make_player(SMALL).choose(Board("8/8/8/2k5/8/2K1p3/8/3qr3 w - - 0 79"), Limits(depth=8))
    mated = next(number for number, progress in enumerate(seen) if progress.best.mate_in is not None)
    assert mated > 0
    assert seen[mated - 1].best.score_cp
    assert (seen[mated].best.mate_in or 0) < 0
    assert seen[mated].fallen_cp > 10_000
    assert all(progress.fallen_cp < 100 for progress in seen[mated + 1 :])
