from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import pytest

from ranks.chess.board import Board
from ranks.chess.match.game import Conditions, GameRecord
from ranks.chess.match.ladder import LadderPlan, play_ladder
from ranks.chess.match.openings import Opening
from ranks.chess.match.schedule import Entrant
from ranks.chess.match.standings import Standings
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.errors import UserError

FREE = Conditions(None)
OPENINGS = [Opening("start", None, ()), Opening("king's pawn", None, (Board().parse_move("e2e4"),))]


class Shaky:
    """Gives up a game at its first move with a chance of its own: games are short, and strength is known."""

    def __init__(self, name: str, chance: float) -> None:
        self.name, self.chance = name, chance

    def new_game(self, seed: int) -> None:
        self.draws = random.Random(seed)

    def choose(self, board: Board, limits: Limits) -> Choice:
        if board.ply < 3 and self.draws.random() < self.chance:
            raise Forfeit(f"{self.name} gives up")
        return Choice(self.draws.choice(board.legal_moves()))

    def close(self) -> None:
        pass


CHANCES = {"steady": 0.1, "shaky": 0.5, "shakier": 0.8}


def plan(chances: dict[str, float] = CHANCES, **more: Any) -> LadderPlan:
    entrants = [
        Entrant(name, lambda n=name, c=chance: Shaky(n, c), {"chance": str(chance)}) for name, chance in chances.items()
    ]
    given: dict[str, Any] = {"games_per_pair": 20, "max_plies": 6, "seed": 3, **more}
    return LadderPlan(entrants, OPENINGS, "two", FREE, **given)


def write_line(stream: TextIO, game: GameRecord) -> None:
    stream.write(f"{game.white} {game.black} {game.opening.name} {game.result} {game.reason}\n")


def play(ladder: LadderPlan, folder: Path) -> Standings:
    return play_ladder(ladder, folder, "ranks chess ladder", write_line)


def content(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "ladder.json").read_text())


def test_a_ladder_leaves_everything_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    standings = play(plan(anchors={"shaky": 1350}), tmp_path)
    assert [row.player for row in standings.rows] == ["steady", "shaky", "shakier"]
    assert standings.rows[1].elo == (1350, 1350, 1350)
    assert standings.unseparated == []
    found = content(tmp_path)
    assert found["games"] == 60
    assert found["scale"] == "logistic Elo, shaky = 1350"
    assert found["plan"]["players"]["shaky"] == {"chance": "0.5"}
    assert {"date", "command", "versions", "hardware"} <= found.keys()
    assert sum(sum(pairing["pentanomial"]) for pairing in found["pairings"]) == 30
    assert sum(times for _, _, times in found["forfeits"]) > 20
    assert (tmp_path / "ladder.png").read_bytes().startswith(b"\x89PNG")
    games = (tmp_path / "games.pgn").read_text().splitlines()
    assert len(games) == 60
    assert games[0].split()[:2] == games[1].split()[1::-1]
    assert sum("king's pawn" in line for line in games) == 30
    out = capsys.readouterr().out
    assert "separated after 20 games with each other" in out
    assert "scale: logistic Elo, shaky = 1350" in out


def test_a_stopped_ladder_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(plan(), tmp_path / "straight")
    seen: list[GameRecord] = []

    def stop_after_25(stream: TextIO, game: GameRecord) -> None:
        seen.append(game)
        if len(seen) == 26:
            raise KeyboardInterrupt
        write_line(stream, game)

    stopped = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        play_ladder(plan(), stopped, "ranks chess ladder", stop_after_25)
    assert content(stopped)["games"] == 24
    assert len((stopped / "games.pgn").read_text().splitlines()) == 25
    with (stopped / "pairs.jsonl").open("a") as stream:
        stream.write('{"first": "shaky", "sec')
    play(plan(), stopped)
    for name in ("games.pgn", "pairs.jsonl"):
        assert (stopped / name).read_text() == (tmp_path / "straight" / name).read_text()
    assert content(stopped)["pairings"] == content(tmp_path / "straight")["pairings"]

    def no_more_games(stream: TextIO, game: GameRecord) -> None:
        pytest.fail("a game was played again")

    play_ladder(plan(), stopped, "ranks chess ladder", no_more_games)


def test_a_ladder_that_is_stopped_before_anything_can_be_rated(tmp_path: Path) -> None:
    def stop(stream: TextIO, game: GameRecord) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_ladder(plan(), tmp_path, "ranks chess ladder", stop)
    play(plan(), tmp_path)
    assert content(tmp_path)["games"] == 60


def test_a_ladder_refuses_other_settings_and_takes_new_players(tmp_path: Path) -> None:
    play(plan(), tmp_path)
    for changed in (plan(seed=4), plan({**CHANCES, "shaky": 0.4}), plan(max_plies=8)):
        with pytest.raises(UserError, match="begun with other settings"):
            play(changed, tmp_path)
    standings = play(plan({"steady": 0.1, "steadier": 0.02}), tmp_path)
    assert {row.player for row in standings.rows} == {*CHANCES, "steadier"}
    assert content(tmp_path)["games"] == 80


def test_neighbours_play_until_they_are_separated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chances = {"a": 0.3, "b": 0.36, "c": 0.9}
    few = play(plan(chances, games_per_pair=20), tmp_path)
    assert ("a", "b") in few.unseparated
    more = play(plan(chances, games_per_pair=20, until_separated=2000), tmp_path)
    assert more.unseparated == []
    between = {row.player: row.games_with_next for row in more.rows}
    assert 20 < between["a"] < 2000
    assert "not separated: a and b" in capsys.readouterr().out
    equal = play(plan({"x": 0.3, "y": 0.3}, until_separated=40, seed=5), tmp_path / "equal")
    assert equal.unseparated
    assert equal.rows[0].games_with_next == 40


def test_a_player_that_loses_everything_is_rated_with_a_prior(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    standings = play(plan({"steady": 0.0, "steadier": 0.0, "gone": 1.0}), tmp_path)
    assert standings.rows[-1].player == "gone"
    assert standings.ratings.prior_games == 1
    assert "rated with a prior" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("chances", "more", "found"),
    [
        ({"a": 0.1}, {}, "fewer than two"),
        (CHANCES, {"games_per_pair": 3}, "in pairs"),
        (CHANCES, {"games_per_pair": 0}, "in pairs"),
        (CHANCES, {"until_separated": 7}, "in pairs"),
        (CHANCES, {"concurrency": 0}, "nobody to play"),
        (CHANCES, {"anchors": {"nobody": 0}}, "players: "),
    ],
)
def test_a_ladder_that_cannot_be_is_refused(chances: dict[str, float], more: dict[str, Any], found: str) -> None:
    with pytest.raises(UserError, match=found):
        plan(chances, **more)


def test_names_are_told_apart() -> None:
    def twice() -> Sequence[Entrant]:
        return plan().entrants * 2

    with pytest.raises(UserError, match="two players of one name"):
        LadderPlan(list(twice()), OPENINGS, "two", FREE, 2)
