"""UCI engines as players: finding them, checking their options, and playing with a real one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ranks.chess.board import Board, move_to_uci
from ranks.chess.commands.bench import bench
from ranks.chess.commands.players import make_player
from ranks.chess.players.player import Clock, Limits
from ranks.chess.uci.player import FOLDERS, UciPlayer, find_command, install
from ranks.errors import UserError
from tests.chess.uci.fake_engine import TIMEOUTS, command, processes_of, written
from tests.chess.uci.uci_conversation import Conversation

FOLDERS_OF_PROGRAMS = os.pathsep.join(str(Path(folder).expanduser()) for folder in FOLDERS)
STOCKFISH = shutil.which("stockfish") or shutil.which("stockfish", path=FOLDERS_OF_PROGRAMS)


def test_the_bench_names_an_engine_that_dies(fake: Path) -> None:
    with pytest.raises(UserError, match=r"bench of the player (.|\n)* exit code 3"):
        bench(player="uci:" + shlex.join(command(fake, "dies at ucinewgame")), depth=1)


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    return written(tmp_path)


def test_options_are_checked_against_those_of_the_engine(fake: Path) -> None:
    received = fake.with_name("options.txt")
    options = {"skill level": "20", "STYLE": "risky play", "Own Book": "true"}
    player = UciPlayer("uci:fake", command(fake, "none"), options, timeouts=TIMEOUTS)
    player.close()
    assert received.read_text().splitlines() == [
        "setoption name Skill Level value 20",
        "setoption name Style value risky play",
        "setoption name Own Book value true",
    ]
    for options, found, do in [
        ({"Skil Level": "3"}, "Fake 1.0 has no option 'Skil Level'", "did you mean Skill Level?"),
        ({"Hash": "3"}, "no option 'Hash'", "it has Skill Level, Style, Own Book"),
        ({"Skill Level": "21"}, "21 is not from 0 to 20", "Skill Level"),
        ({"Skill Level": "much"}, "'much' is not a number", "Skill Level"),
        ({"Style": "wild"}, "'wild' is none of Solid, Risky Play", "Style"),
        ({"Own Book": "1"}, "neither true nor false", "Own Book"),
    ]:
        with pytest.raises(UserError) as error:
            UciPlayer("uci:fake", command(fake, "none"), options, timeouts=TIMEOUTS)
        assert found in error.value.found
        assert do in error.value.do
    assert processes_of(fake) == []


def test_engines_are_found_or_the_error_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "my engine"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_command(f"'{program}' --fast", "x") == [str(program), "--fast"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_command("'my engine'", "x") == [str(program)]
    with pytest.raises(UserError, match="no program 'stokfish' on PATH or in /usr/games"):
        find_command("stokfish", "x")
    assert install("lc0") == "install it: " + " or ".join(
        f"{how} lc0" for how in ["sudo apt install", "brew install", "sudo dnf install", "sudo pacman -S"]
    )
    (tmp_path / "brew").write_text("#!/bin/sh\n")
    (tmp_path / "brew").chmod(0o755)
    assert install("engines/lc0") == "install it: brew install lc0"
    for spec in ["uci", "uci:", "uci:'", "uci:my@0"]:
        with pytest.raises(UserError):
            make_player(spec)


def test_a_bare_go_waits_for_stop_also_if_the_player_is_an_engine(fake: Path) -> None:
    player = UciPlayer("uci:fake", command(fake, "waits for stop"), {}, timeouts=TIMEOUTS)
    with Conversation(lambda: player) as gui:
        gui.ask("go", "info depth 1 score cp 13")
        time.sleep(0.1)
        assert gui.received == []
        assert gui.ask("stop", "bestmove") == ["bestmove e2e4 ponder e7e5"]
    assert processes_of(fake) == []


@pytest.mark.parametrize("fault", ["dies", "dies at ucinewgame"])
def test_an_engine_that_dies_as_a_player_of_our_engine_is_a_user_error(fake: Path, fault: str) -> None:
    player = f"uci:{shlex.join(command(fake, fault))}"
    engine = [sys.executable, "-m", "ranks", "chess", "uci", "--player", player]
    ended = subprocess.run(engine, input="uci\nisready\n", capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "the engine died with exit code 3" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert processes_of(fake) == []


@pytest.mark.skipif(STOCKFISH is None, reason="Stockfish is not installed")
def test_stockfish_plays() -> None:
    player = make_player("uci:stockfish@500?Threads=1&Hash=16")
    player.new_game(0)
    mate = Board("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1")
    choice = player.choose(mate, Limits(clock=Clock(60, 60)))
    assert (move_to_uci(choice.move), choice.mate_in) == ("d1d8", 1)
    player.new_game(1)
    first = player.choose(Board(), Limits())
    player.new_game(2)
    assert player.choose(Board(), Limits()) == first
    assert first.nodes < 1500
    player.close()
