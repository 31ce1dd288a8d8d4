"""The players that ship, through the commands of `ranks chess` that a fresh clone has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ranks.chess.board import Board
from ranks.chess.pgn import read_games
from ranks.cli.main import main

SHIPPED = ("chess-spiking@64", "chess-value")
MATE = "7k/5Q2/6K1/8/8/8/8/8 w - - 0 1"


@pytest.mark.parametrize("player", SHIPPED)
def test_any_chess_gui_can_play_a_game_with_it(player: str) -> None:
    """Over UCI in a process of its own: legal moves, and a mate in one where the search may look."""
    script = ["uci", "isready", "position startpos moves e2e4", "go nodes 8", f"position fen {MATE}", "go nodes 64"]
    asked = [sys.executable, "-m", "ranks", "chess", "uci", "--player", player]
    with subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        moves = list[str]()
        for line in script:
            print(line, file=engine.stdin, flush=True)
            if line.startswith("go"):
                best = next(said for said in engine.stdout if said.startswith("bestmove"))
                moves.append(best.split()[1])
        print("quit", file=engine.stdin, flush=True)
        assert engine.wait(60) == 0
    after_e4 = Board("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1")
    after_e4.parse_uci(moves[0])  # raises where the move is not legal
    mated = Board(MATE)
    mated.push(mated.parse_uci(moves[1]))
    outcome = mated.outcome()
    assert outcome is not None
    assert outcome.result == "1-0"


def test_a_gui_that_quits_at_once_ends_it_well() -> None:
    """A thread of torch that ended together with Python aborted three of four such processes."""
    asked = [sys.executable, "-m", "ranks", "chess", "uci", "--player", "chess-spiking@64"]
    for script in ("isready\nquit\n", "position startpos\ngo nodes 64\nquit\n"):
        ended = subprocess.run(asked, input=script, capture_output=True, text=True, timeout=120, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("player", SHIPPED)
def test_it_plays_matches(player: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pgn = tmp_path / "games.pgn"
    flags = ["--nodes", "4", "--rounds", "1", "--max-plies", "12", "--pgnout", str(pgn)]
    assert main(["chess", "match", "--player", player, "--player", "random", *flags]) == 0
    assert player.split("@")[0] in capsys.readouterr().out
    games = list(read_games(pgn))
    assert len(games) == 2
    assert {game.headers["White"] for game in games} == {game.headers["Black"] for game in games}


def test_all_of_them_are_rated_on_one_ladder(tmp_path: Path) -> None:
    players = [flag for player in (*SHIPPED, "random") for flag in ("--player", player)]
    flags = ["--games-per-pair", "2", "--nodes", "4", "--max-plies", "12", "--anchor", "random=0"]
    assert main(["chess", "ladder", str(tmp_path / "ladder"), *players, *flags]) == 0
    found = json.loads((tmp_path / "ladder" / "ladder.json").read_text())
    assert {row["player"] for row in found["standings"]} == {*SHIPPED, "random"}
