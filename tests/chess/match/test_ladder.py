from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import pytest

from ranks.chess.board import Board
from ranks.chess.match.game import Conditions, GameRecord
from ranks.chess.match.ladder import LadderPlan, play_ladder
from ranks.chess.match.openings import Opening
from ranks.chess.match.schedule import Participant
from ranks.chess.match.standings import Standings
from ranks.chess.match.time_control import TimeControl
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.errors import UserError

FREE = Conditions(None)
OPENINGS = [Opening("start", None, ()), Opening("king's pawn", None, (Board().parse_uci("e2e4"),))]


class RandomForfeits:
    """Forfeits at one of its first moves with a given probability, so games are short and strength
    is known."""

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
    participants = [
        Participant(name, lambda n=name, c=chance: RandomForfeits(n, c), {"chance": str(chance)})
        for name, chance in chances.items()
    ]
    given: dict[str, Any] = {"games_per_pair": 20, "max_plies": 6, "seed": 3, **more}
    return LadderPlan(participants, OPENINGS, "two", FREE, **given)


def write_line(stream: TextIO, game: GameRecord) -> None:
    stream.write(f"{game.white} {game.black} {game.opening.name} {game.result} {game.reason}\n")


def play(ladder: LadderPlan, folder: Path) -> Standings:
    return play_ladder(ladder, folder, "ranks chess ladder", write_line)


def content(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "ladder.json").read_text())


def test_a_ladder_of_games_without_moves_is_refused() -> None:
    with pytest.raises(UserError, match="--max-plies 0"):
        plan(max_plies=0)


def test_a_ladder_writes_all_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    standings = play(plan(anchors={"shaky": 1350}), tmp_path)
    assert [row.player for row in standings.rows] == ["steady", "shaky", "shakier"]
    assert standings.rows[1].elo == (1350, 1350, 1350)
    assert standings.unseparated == []
    found = content(tmp_path)
    assert found["games"] == 60
    assert found["scale"] == "logistic Elo, shaky = 1350 (given: its own error is in no interval)"
    assert [row["given"] for row in found["standings"]] == [False, True, False]
    assert (found["looks"], found["above_next_level"]) == (1, 0.95)
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
    assert "scale: logistic Elo, shaky = 1350 (given: its own error is in no interval); +/- is 95 %" in out
    assert [line.split()[3] for line in out.splitlines() if line.startswith("  2 shaky ")] == ["given"]
    assert "2 different openings for 10 pairs of games" in out


def test_a_stopped_ladder_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    for changed, difference in (
        (plan(seed=4), "seed was 3, is 4"),
        (plan({**CHANCES, "shaky": 0.4}), "shaky: chance was 0.5, is 0.4"),
        (plan(max_plies=8), "max_plies was 6, is 8"),
    ):
        with pytest.raises(UserError, match=f"started with other settings .*: {difference}"):
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
    assert (more.looks, round(more.level, 5)) == (8, 0.99375)
    assert plan(games_per_pair=20, until_separated=2000).looks == [10, 20, 40, 80, 160, 320, 640, 1000]
    out = capsys.readouterr().out
    assert "not separated: a and b" in out
    assert "+/- is 99.4 %, so that two players called separated, at any of 8 looks at the games, are" in out
    once = play(plan(chances, games_per_pair=20), tmp_path)
    assert once.looks == 8  # what was looked at so often stays so
    equal = play(plan({"x": 0.3, "y": 0.3}, until_separated=40, seed=5), tmp_path / "equal")
    assert equal.unseparated
    assert equal.rows[0].games_with_next == 40


def test_a_player_that_loses_everything_is_rated_with_a_prior(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    standings = play(plan({"steady": 0.0, "steadier": 0.0, "gone": 1.0}), tmp_path)
    assert standings.rows[-1].player == "gone"
    assert standings.ratings.prior_games == 1
    assert "because without it: gone | steadier, steady: between these" in capsys.readouterr().out
    assert content(tmp_path)["prior_because"].startswith("gone | steadier, steady")


def test_a_clock_makes_margin_and_concurrency_part_of_a_ladder() -> None:
    def identity(**more: Any) -> dict[str, Any]:
        conditions = (
            Conditions(TimeControl(10), time_margin_s=more.pop("time_margin_s", 0.0)) if more.pop("clock") else FREE
        )
        participants = [Participant(name, lambda: RandomForfeits("any", 0)) for name in "ab"]
        return LadderPlan(participants, OPENINGS, "two", conditions, 2, **more).identity

    assert identity(clock=False, concurrency=2) == identity(clock=False)
    assert identity(clock=True, concurrency=2) != identity(clock=True)
    assert identity(clock=True, time_margin_s=1.0) != identity(clock=True)


def test_two_ladders_cannot_write_into_one_folder(tmp_path: Path) -> None:
    def begin_another(stream: TextIO, game: GameRecord) -> None:
        with pytest.raises(UserError, match="another ladder is writing here"):
            play(plan(), tmp_path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_ladder(plan(), tmp_path, "ranks chess ladder", begin_another)
    play(plan(), tmp_path)
    assert content(tmp_path)["games"] == 60


def damage_line(key: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        lines = (folder / "pairs.jsonl").read_text().splitlines()
        entry = json.loads(lines[6])
        del entry[key]
        lines[6] = json.dumps(entry)
        (folder / "pairs.jsonl").write_text("\n".join(lines) + "\n")

    return damage


def write(name: str, text: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).write_text(text)

    return damage


def replace_text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return damage


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (write("plan.json", '{\n"seed": 3,\n'), r"plan.json is damaged: line 3"),
        (write("plan.json", "[]"), r"plan.json is damaged: these are not the settings"),
        (write("plan.json", '{"players": {"a": 3}}'), r"plan.json is damaged: these are not the settings"),
        (damage_line("first"), r"pairs.jsonl, line 7 is damaged: there is no 'first'"),
        (damage_line("points"), r"pairs.jsonl, line 7 is damaged: there is no 'points'"),
        (damage_line("pgn_bytes"), r"pairs.jsonl, line 7 is damaged: there is no 'pgn_bytes'"),
        (write("pairs.jsonl", "{}\n"), r"pairs.jsonl, line 1 is damaged: there is no 'first'"),
        (write("pairs.jsonl", "3\n"), r"pairs.jsonl, line 1 is damaged"),
        (write("pairs.jsonl", '{"first": \n'), r"pairs.jsonl, line 1 is damaged: Expecting value"),
        (replace_text("pairs.jsonl", '"points": [', '"points": [7, '), r"line 1 is damaged: too many values"),
        (replace_text("pairs.jsonl", '"number": 1,', '"number": 0,'), r"pair 0 of .* occurs twice"),
        (replace_text("pairs.jsonl", '"forfeits": [[', '"forfeits": [["x", '), r"line \d+ is damaged"),
        (write("games.pgn", "short"), r"games.pgn has 5 bytes where the finished pairs filled \d+"),
        (lambda folder: (folder / "games.pgn").unlink(), r"games.pgn has 0 bytes"),
        (lambda folder: (folder / "pairs.jsonl").unlink(), r"games.pgn without pairs.jsonl"),
        (lambda folder: (folder / "plan.json").unlink(), r"pairs.jsonl without plan.json"),
    ],
)
def test_damaged_files_are_refused_and_not_changed(damage: Callable[[Path], None], found: str, tmp_path: Path) -> None:
    play(plan(games_per_pair=6), tmp_path)
    damage(tmp_path)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(UserError, match=found):
        play(plan(games_per_pair=6), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept


@pytest.mark.parametrize(
    ("chances", "more", "found"),
    [
        ({"a": 0.1}, {}, "fewer than two"),
        (CHANCES, {"games_per_pair": 3}, "in pairs"),
        (CHANCES, {"games_per_pair": 0}, "in pairs"),
        (CHANCES, {"until_separated": 7}, "in pairs"),
        (CHANCES, {"concurrency": 0}, "no thread would play"),
        (CHANCES, {"anchors": {"nobody": 0}}, "players: "),
    ],
)
def test_an_invalid_ladder_is_refused(chances: dict[str, float], more: dict[str, Any], found: str) -> None:
    with pytest.raises(UserError, match=found):
        plan(chances, **more)


def test_equal_names_are_refused_or_numbered() -> None:
    def twice() -> Sequence[Participant]:
        return plan().participants * 2

    with pytest.raises(UserError, match="two players of the same name"):
        LadderPlan(list(twice()), OPENINGS, "two", FREE, 2)
