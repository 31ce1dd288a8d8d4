from __future__ import annotations

import random
import threading
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from ranks.chess.board import Board
from ranks.chess.match.game import Abandoned, Conditions, GameRecord, Side, play_game
from ranks.chess.match.match import MatchPlan, play_match
from ranks.chess.match.openings import Opening, repetition_lines, seeded_openings
from ranks.chess.match.schedule import Participant, pair_tasks, play_pairs
from ranks.chess.match.time_control import GameClock, TimeControl
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.errors import UserError
from ranks.rating.sprt import Sprt
from tests.chess.fake_clock import FakeClock

START = Opening("start", None, ())
FREE = Conditions(None)


class RandomMover:
    """Plays random moves. `faults` maps the number of a move to what happens there."""

    def __init__(self, name: str, faults: dict[int, Callable[[], Choice]] | None = None) -> None:
        self.name = name
        self.faults = faults or {}
        self.limits: list[Limits] = []
        self.closed = 0

    def new_game(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.moves = 0

    def choose(self, board: Board, limits: Limits) -> Choice:
        self.moves += 1
        self.limits.append(limits)
        if self.moves in self.faults:
            return self.faults[self.moves]()
        return Choice(self.rng.choice(board.legal_moves()))

    def close(self) -> None:
        self.closed += 1


def dies() -> Choice:
    raise Forfeit("B has died")


def moves_illegally() -> Choice:
    return Choice(0)


CLOCK = FakeClock(tick_s=0.001)


def moves_late() -> Choice:
    CLOCK.advance(0.15)
    return Choice(Board().parse_uci("e2e4"))


def participant(name: str, faults: dict[int, Callable[[], Choice]] | None = None) -> Participant:
    return Participant(name, lambda: RandomMover(name, faults))


def game(white: RandomMover, black: RandomMover, conditions: Conditions = FREE, **more: int) -> GameRecord:
    sides = Side(white.name, white), Side(black.name, black)
    return play_game(*sides, START, conditions, seed=1, round="1.1", stopping=lambda: False, now=CLOCK, **more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10+0.1", TimeControl(10, 0.1)),
        ("40/60+0.5", TimeControl(60, 0.5, 40)),
        ("5:00+3", TimeControl(300, 3)),
        ("0.5", TimeControl(0.5)),
    ],
)
def test_time_controls_are_read(text: str, expected: TimeControl) -> None:
    assert TimeControl.parse(text) == expected
    assert TimeControl.parse(str(expected)) == expected


@pytest.mark.parametrize("text", ["", "0", "ten", "10+", "0/60", "-5", "10 + 1", "40/", "1e3", "inf", "10+0.1/40"])
def test_an_invalid_time_control_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="40/60"):
        TimeControl.parse(text)


def test_clocks_count_increments_periods_and_flags() -> None:
    clock = GameClock(TimeControl(10, 1, 2))
    assert clock.moves_to_go(0) == 2
    assert clock.spend(0, 4)
    assert (clock.remaining_s, clock.moves_to_go(0), clock.moves_to_go(1)) == ([7, 10], 1, 2)
    assert clock.spend(0, 6.5)
    assert clock.remaining_s[0] == pytest.approx(11.5)
    assert not clock.spend(1, 10.5)
    assert GameClock(TimeControl(10), time_margin_s=1).spend(0, 10.5)
    assert GameClock(TimeControl(10)).moves_to_go(0) is None


def test_a_game_ends_by_the_rules_and_every_move_is_legal() -> None:
    record = game(RandomMover("A"), RandomMover("B"))
    board = Board()
    for turn in record.turns:
        assert board.outcome() is None
        board.push(turn.choice.move)
    outcome = board.outcome()
    assert outcome is not None
    assert record.result == outcome.result
    assert not record.forfeited
    again = game(RandomMover("A"), RandomMover("B"))
    assert [turn.choice for turn in again.turns] == [turn.choice for turn in record.turns]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(dies, "forfeits: B has died"), (moves_illegally, "makes an illegal move: a1a1"), (moves_late, "loses on time")],
)
@pytest.mark.parametrize("colour", [0, 1])
def test_a_player_that_fails_forfeits_and_is_named(fault: Callable[[], Choice], reason: str, colour: int) -> None:
    players = [RandomMover("A"), RandomMover("B")]
    players[colour].faults[1] = fault
    record = game(players[0], players[1], Conditions(TimeControl(0.1)))
    assert record.result == ("0-1", "1-0")[colour]
    assert record.reason == f"{('White', 'Black')[colour]} {reason}"
    assert record.forfeited
    assert record.loser == "AB"[colour]


def test_limits_reach_the_players() -> None:
    players = [RandomMover("A"), RandomMover("B")]
    game(players[0], players[1], Conditions(TimeControl(60, 0.5, 40), time_margin_s=7.0), max_plies=6)
    assert players[1].limits[2].time_margin_s == 7.0
    clock = players[1].limits[2].clock
    assert clock is not None
    assert (clock.increment_s, clock.moves_to_go) == (0.5, 38)
    assert 60 < clock.remaining_s <= 61 < clock.other_remaining_s <= 61.5
    fixed = Limits(nodes=100)
    record = game(players[0], players[1], Conditions(None, fixed), max_plies=4)
    assert players[0].limits[-1].nodes == 100
    assert players[0].limits[-1].clock is None
    assert record.reason == "Draw by length: 4 plies"
    assert record.result == "1/2-1/2"


def test_pairs_do_not_depend_on_the_number_of_threads() -> None:
    def moves(concurrency: int) -> list[list[int]]:
        tasks = pair_tasks([(participant("A"), participant("B"), 5)], islice(seeded_openings(3), 3))
        games: list[GameRecord] = []
        pairs = list(play_pairs(tasks, FREE, 7, concurrency, games.append))
        assert len(games) == 10
        assert [pair.task.number for pair in pairs] == [0, 1, 2, 3, 4]
        assert all(pair.with_white.white == pair.with_black.black == "A" for pair in pairs)
        assert pairs[0].task.opening == pairs[3].task.opening != pairs[1].task.opening
        return [
            [turn.choice.move for turn in game.turns] for pair in pairs for game in (pair.with_white, pair.with_black)
        ]

    alone = moves(1)
    assert alone == moves(3)
    assert alone[0] != alone[6]


def test_encounters_take_turns_on_the_same_openings() -> None:
    a, b, c = participant("A"), participant("B"), participant("C")
    openings = [START, Opening("other", None, (Board().parse_uci("e2e4"),))]
    tasks = list(pair_tasks([(a, b, 1), (a, c, 3)], openings))
    assert [task.key for task in tasks] == [("A", "B", 0), ("A", "C", 0), ("A", "C", 1), ("A", "C", 2)]
    assert [task.opening.name for task in tasks] == ["start", "start", "other", "start"]
    assert list(pair_tasks([], openings)) == []


def test_a_warning_about_too_few_openings() -> None:
    other = Opening("other", None, (Board().parse_uci("e2e4"),))
    assert list(repetition_lines([START, other], 2)) == []
    assert list(repetition_lines(seeded_openings(0), 1000)) == []
    (line,) = repetition_lines([START, other, Opening("again", None, ())], 3)
    assert line.startswith("2 different openings for 3 pairs")


def test_a_match_continues_after_forfeits_and_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    plan = MatchPlan(participant("good"), participant("bad", {2: moves_illegally}), [START], FREE, rounds=3)
    seen: list[GameRecord] = []
    score = play_match(plan, seen.append)
    assert len(seen) == 6
    lines = capsys.readouterr().out.splitlines()
    assert lines.pop(0).startswith("1 different openings for 3 pairs of games: openings are repeated")
    assert lines[0] == "Finished game 1 (good vs bad): 1-0 {Black makes an illegal move: a1a1}"
    assert lines[-4:] == [
        "Normalised Elo: inf",
        "Ptnml(0-2): 0, 0, 0, 0, 3",
        "Forfeit: bad 3 times (Black makes an illegal move: a1a1)",
        "Forfeit: bad 3 times (White makes an illegal move: a1a1)",
    ]
    assert score.line == "Score of good vs bad: 6 - 0 - 0  [1.000] 6"


def test_a_player_that_does_not_start_forfeits() -> None:
    def refuse() -> RandomMover:
        raise Forfeit("A does not start")

    pairs = list(play_pairs(pair_tasks([(Participant("A", refuse), participant("B"), 1)], [START]), FREE, 0, 1, len_of))
    assert [pairs[0].with_white.reason, pairs[0].with_black.reason] == [
        f"{side} forfeits: A does not start" for side in ("White", "Black")
    ]
    assert [pairs[0].with_white.result, pairs[0].with_black.result] == ["0-1", "1-0"]


def len_of(record: GameRecord) -> None:
    assert record.turns == []


def test_the_sequential_test_ends_a_match(capsys: pytest.CaptureFixture[str]) -> None:
    plan = MatchPlan(
        participant("A"), participant("B", {3: dies}), [START], FREE, rounds=500, sprt=Sprt(0, 100), concurrency=2
    )
    score = play_match(plan, lambda game: None)
    games = score.table.games("A", "B").games
    assert 4 <= games < 200
    assert "H1 was accepted" in capsys.readouterr().out


def test_a_stopped_match_closes_its_players_and_shows_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    opened: list[RandomMover] = []
    running = threading.enumerate()

    def make() -> RandomMover:
        opened.append(RandomMover("A"))
        return opened[-1]

    def stop_after_three(game: GameRecord) -> None:
        seen.append(game)
        if len(seen) == 3:
            raise KeyboardInterrupt

    seen: list[GameRecord] = []
    plan = MatchPlan(Participant("A", make), participant("B"), [START], FREE, rounds=50)
    with pytest.raises(KeyboardInterrupt):
        play_match(plan, stop_after_three)
    assert "Ptnml(0-2)" in capsys.readouterr().out
    assert opened[0].closed >= 1
    assert [thread for thread in threading.enumerate() if thread not in running] == []


def test_a_stopped_game_is_abandoned() -> None:
    with pytest.raises(Abandoned):
        play_game(
            Side("A", RandomMover("A")),
            Side("B", RandomMover("B")),
            START,
            FREE,
            seed=0,
            round="1.1",
            stopping=lambda: True,
        )


def test_an_exception_in_a_player_is_raised() -> None:
    def breaks() -> Choice:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(
            play_pairs(pair_tasks([(participant("A", {1: breaks}), participant("B"), 2)], [START]), FREE, 0, 2, len_of)
        )


@pytest.mark.parametrize("more", [{"rounds": 0}, {"rounds": 1, "concurrency": 0}])
def test_nothing_to_play_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="nothing to play"):
        MatchPlan(participant("A"), participant("B"), [START], FREE, **more)
