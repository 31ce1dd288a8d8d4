"""`ranks chess-value analyse`, and a net from an export folder as the player."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from torch import nn

from ranks.chess.board import Board
from ranks.chess.pgn import read_games
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.cli.main import main
from ranks.engine.export.about import ExportAbout
from ranks.engine.export.export import export_model
from ranks.progress import ProgressBar
from ranks.workloads.chess_value.analysis.games import GamesAnalysis
from ranks.workloads.chess_value.config import ValueNetConfig
from ranks.workloads.chess_value.net.building import build_net
from ranks.workloads.chess_value.net.nnue import NnueNet
from ranks.workloads.chess_value.net.resnet import ResnetValue

GAMES = """[White "A"]
[Black "B"]
[Result "1-0"]

1. e4 e5 2. Qh5 {early} Nc6 3. Bc4 Nf6 4. Qxf7# 1-0

[Event "damaged"]
[Result "*"]

1. e4 e5 2. Ke3 *

[SetUp "1"]
[FEN "7k/5Q2/6K1/8/8/8/8/8 b - - 0 30"]
[Result "1/2-1/2"]

1/2-1/2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "games.pgn").write_text(GAMES)
    return tmp_path


def test_mistakes_mates_and_damaged_games_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chess-value", "analyse", "games.pgn", "--player", "engine", "--nodes", "3000"]) == 0
    said = capsys.readouterr().out
    assert "skipped games.pgn, game 2 (line 7), move 2. Ke3" in said
    assert "black: 3 moves, 1 blunder" in said
    assert "3... Nf6" in said
    assert "game 3: ? - ?, 1/2-1/2" in said
    place = folder / "games-analysis"
    assert {path.name for path in place.iterdir()} == {"annotated.pgn", "game-1.png", "game-3.png"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in place.glob("*.png"))
    first, _ = read_games(place / "annotated.pgn")
    assert first.headers["Annotator"] == "ranks, engine, 3,000 nodes a position"
    assert first.comments[3].endswith("early")
    assert "[%eval #1," in first.comments[6]
    assert "Blunder: the win probability of black falls" in first.comments[6]
    assert 7 not in first.comments, "the game is over there"


def test_the_file_that_is_read_is_not_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By whatever name: the first game that was done emptied the file."""
    (folder / "annotated.pgn").write_text(GAMES)
    (folder / "linked").mkdir()
    (folder / "linked" / "annotated.pgn").symlink_to(folder / "games.pgn")
    for flags in (["annotated.pgn", "--out", "."], ["games.pgn", "--out", "linked"]):
        assert main(["chess-value", "analyse", *flags, "--player", "engine", "--depth", "1"]) == 2
        assert f"{flags[2]}/annotated.pgn".removeprefix("./") + " is the file that is read" in capsys.readouterr().err
    assert (folder / "annotated.pgn").read_text() == (folder / "games.pgn").read_text() == GAMES


@dataclass
class FailingPlayer:
    """Scores the positions of the first game, five of them, and then raises."""

    error: BaseException
    left: int = 5
    name: str = "failing"

    def new_game(self, seed: int) -> None: ...

    def choose(self, board: Board, limits: Limits) -> Choice:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return Choice(board.legal_moves()[0], 0)

    def close(self) -> None: ...


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Forfeit("died"), OSError("full")])
def test_an_earlier_analysis_stays_until_the_end(error: BaseException, folder: Path) -> None:
    """Then the games that were done replace it. On a full disk both stay."""
    (folder / "out").mkdir()
    kept = folder / "out" / "annotated.pgn"
    kept.write_text("an earlier analysis")
    (folder / "games.pgn").write_text("1. e4 e5 *\n\n1. d4 d5 2. c4 e6 3. Nc3 *\n")
    with ProgressBar() as bar:
        analysis = GamesAnalysis(FailingPlayer(error), Limits(depth=1), "failing", folder / "out", bar)
        with pytest.raises(type(error)):
            analysis.run(folder / "games.pgn", None)
    parts = [folder / "out" / "annotated.pgn.part"] if isinstance(error, OSError) else []
    assert sorted(path for path in (folder / "out").glob("annotated.pgn.*")) == parts
    assert (kept.read_text() == "an earlier analysis") == bool(parts)
    assert [len(game.moves) for game in read_games([*parts, kept][0])] == [2]


UNCLAIMED = """[Result "0-1"]
[FEN "6k1/8/8/8/8/8/5q2/1Q4K1 w - - 0 1"]
[SetUp "1"]

1. Kh1 {[%eval 9.10,3] [%clk 0:03:00] here} Kg7 2. Qb7+ Kg8 3. Qb1 Kg7 4. Qb7+ Kg8 5. Qb1 Kg7 6. Qa1+ Kg8 7. Qa8+ 0-1
"""
"""The position of the beginning, with black's king on g7, occurs a third time after 5... Kg7."""


def test_a_third_repetition_that_nobody_claims_ends_no_game(folder: Path) -> None:
    (folder / "unclaimed.pgn").write_text(UNCLAIMED)
    assert main(["chess-value", "analyse", "unclaimed.pgn", "--player", "engine", "--nodes", "500"]) == 0
    text = (folder / "unclaimed-analysis" / "annotated.pgn").read_text()
    (game,) = read_games(folder / "unclaimed-analysis" / "annotated.pgn")
    plies = range(1, len(game.moves) + 1)
    assert [game.comments[ply].count("[%eval ") for ply in plies] == [1] * len(plies)
    assert "9.10" not in text
    assert "[%clk 0:03:00] here" in game.comments[1]
    assert "Best was ." not in text


def test_mistakes_have_glyphs_and_commands_are_on_one_line(folder: Path) -> None:
    assert main(["chess-value", "analyse", "games.pgn", "--player", "engine", "--nodes", "3000"]) == 0
    text = (folder / "games-analysis" / "annotated.pgn").read_text()
    assert "Nf6 $4 {[%eval #1," in text
    assert not [line for line in text.splitlines() if line.count("[%") > len(re.findall(r"\[%\w+ [^\]]+\]", line))]


def test_a_fetched_net_is_a_player(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = folder / "net"
    export_model(build_net(ValueNetConfig(width=16)), place)
    about = ExportAbout("chess-value", "demo", 1, 0, {}, {}, {})
    (place / "ranks.json").write_bytes(about.to_bytes())
    argv = ["chess-value", "analyse", "games.pgn", "--game", "1", "--depth", "1", "--out", "out"]
    assert main([*argv, "--player", "model:net@200"]) == 0
    assert "written: out/annotated.pgn and 1 picture" in capsys.readouterr().out
    (place / "model.safetensors").write_bytes(b"damaged")
    assert main([*argv, "--player", "model:net"]) == 2
    assert "its config.json says" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (["games.pgn", "--player", "random"], "it gives no scores"),
        (["games.pgn", "--player", "model:."], "ranks.json: missing"),
        (["games.pgn", "--player", "run:none"], "no run none"),
        (["games.pgn", "--player", "uci:/bin/cat"], "uci:/bin/cat"),
        (["games.pgn", "--nodes", "5", "--depth", "1"], "limits that exclude each other"),
        (["games.pgn", "--nodes", "0"], "this is not a limit"),
        (["games.pgn", "--game", "2"], "no game 2 in games.pgn; games skipped: 1"),
        (["games.pgn", "--game", "0"], "games are counted from 1"),
        (["none.pgn"], "none.pgn"),
        (["empty.pgn"], "no game that can be read in empty.pgn"),
        (["games.pgn", "--out", "games.pgn"], "give a writable folder with --out"),
    ],
)
def test_bad_input(flags: list[str], found: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "empty.pgn").write_text("")
    earlier = [folder / f"{name}-analysis" / "annotated.pgn" for name in ("games", "empty", "missing")]
    for path in earlier:
        path.parent.mkdir(exist_ok=True)
        path.write_text("an earlier analysis")
    assert main(["chess-value", "analyse", *flags]) == 2
    assert found in capsys.readouterr().err
    assert {path.read_text() for path in earlier} == {"an earlier analysis"}


@pytest.mark.parametrize(
    "net",
    [
        NnueNet(features=768, bucket_features=768, width=16, hidden=1, output_buckets=1),
        ResnetValue(planes=12, blocks=1, channels=8, hidden=8),
    ],
)
def test_a_model_of_other_inputs_is_refused(net: nn.Module, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The engine's kernels check no bounds."""
    export_model(net, folder / "net")
    (folder / "net" / "ranks.json").write_bytes(ExportAbout("chess-value", "demo", 1, 0, {}, {}, {}).to_bytes())
    assert main(["chess-value", "analyse", "games.pgn", "--player", "model:net@200"]) == 2
    assert "use the version of ranks that exported it" in capsys.readouterr().err


def test_names_with_dollar_signs_are_drawn(folder: Path) -> None:
    path = folder / "games.pgn"
    path.write_text(path.read_text().replace('[White "', '[White "Ca$h_$tack ', 1))
    argv = ["chess-value", "analyse", "games.pgn", "--game", "1", "--depth", "1", "--out", "out"]
    assert main([*argv, "--player", "engine:tables"]) == 0
