from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

import ranks
from ranks import __version__
from ranks.chess.commands import match_options
from ranks.chess.commands.players import PLAYERS
from ranks.chess.engine.nnue.weights import random_weights, save_weights
from ranks.chess.pgn import read_games
from ranks.cli.main import main


def test_a_match_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pgn = tmp_path / "games.pgn"
    command = (
        "chess match --player greedy --player alphabeta:2 --rounds 3 --concurrency 2 --sprt elo0=0,elo1=20 --pgnout"
    )
    assert main([*command.split(), str(pgn)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("Finished game ") for line in out) == 6
    assert re.fullmatch(r"Score of greedy vs alphabeta:2: \d - \d - \d  \[0\.\d{3}\] 6", out[-5])
    assert out[-4].startswith("Elo difference: ")
    assert out[-3].startswith("Normalised Elo: ")
    assert out[-2].startswith("Ptnml(0-2): ")
    assert out[-1].startswith("SPRT: llr -0.")
    games = list(read_games(pgn))
    assert len(games) == 6
    assert {game.headers["Round"] for game in games} == {f"{pair}.{game}" for pair in (1, 2, 3) for game in (1, 2)}
    for game in games:
        outcome = game.board().outcome()
        assert outcome is not None
        assert outcome.result == game.result
        assert re.search(r"(mates|Draw by .*)$", game.comments[len(game.moves)])
        comments = [game.comments[ply] for ply in range(9, len(game.moves) + 1)]
        assert all(re.match(r"[-+](M\d+|\d+\.\d\d)/\d+ \d+\.\d{3}s", comment) for comment in comments)


def test_the_pgn_file_is_appended_to(tmp_path: Path) -> None:
    pgn = tmp_path / "games.pgn"
    for seed in ("1", "2"):
        command = f"chess match --player random --player greedy --rounds 1 --max-plies 20 --seed {seed} --pgnout {pgn}"
        assert main(command.split()) == 0
    assert len(list(read_games(pgn))) == 4


def test_a_ladder_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"chess ladder {tmp_path}/pool --player random --player greedy --player minimax:2 --games-per-pair 4"
    assert main([*command.split(), "--max-plies", "40", "--anchor", "random=400"]) == 0
    found = json.loads((tmp_path / "pool" / "ladder.json").read_text())
    assert found["games"] == 12
    assert found["scale"].startswith("logistic Elo, random = 400 (given")
    assert found["plan"]["players"]["minimax:2"] == {
        "word": "minimax:2",
        "program": f"ranks {__version__}",
        "sha256": match_options.our_sha256(),
    }
    assert len(list(read_games(tmp_path / "pool" / "games.pgn"))) == 12
    assert "scale: logistic Elo, random = 400 (given" in capsys.readouterr().out


def test_a_ladder_with_another_player_under_the_same_spec_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"chess ladder {tmp_path}/pool --player random --player greedy --games-per-pair 2 --max-plies 10".split()
    assert main(command) == 0
    assert main(command) == 0
    capsys.readouterr()
    before = match_options.our_sha256()
    monkeypatch.setattr(match_options, "our_sha256", lambda: "f00")
    assert main(command) == 2
    assert f"random: sha256 was {before}, is f00; greedy: sha256 was {before}, is f00" in capsys.readouterr().err


def refused_after(change: Callable[[], object], player: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Start a ladder in the current folder, resume it, change something, resume it again. Returns the error."""
    command = ["chess", "ladder", "pool", "--player", player, "--player", "random"]
    command += ["--games-per-pair", "2", "--max-plies", "10"]
    assert main(command) == 0
    assert main(command) == 0
    games = Path("pool/pairs.jsonl").read_bytes()
    change()
    capsys.readouterr()
    assert main(command) == 2
    assert Path("pool/pairs.jsonl").read_bytes() == games
    return capsys.readouterr().err


def test_a_ladder_with_another_net_of_the_engine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    net = tmp_path / "net" / "nnue.safetensors"
    net.parent.mkdir()
    save_weights(net, random_weights(16, seed=1))
    word = "engine:net?nodes=20"
    error = refused_after(lambda: save_weights(net, random_weights(16, seed=2)), word, capsys)
    assert f"{word}: sha256 was " in error
    assert "random: sha256" not in error


def test_a_ladder_with_another_file_of_a_uci_engine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its script, or a net that an option names."""
    monkeypatch.chdir(tmp_path)
    script, net = tmp_path / "mayfly.py", tmp_path / "net.bin"
    script.write_text(DIES)
    net.write_text("1")
    word = f"uci:{sys.executable} -S {script}@50?EvalFile={net}"
    assert "sha256 was " in refused_after(lambda: net.write_text("2"), word, capsys)
    net.write_text("1")
    script.write_text(DIES + "# another version\n")
    assert main(["chess", "ladder", "pool", "--player", word, "--player", "random", "--max-plies", "10"]) == 2
    assert "sha256 was " in capsys.readouterr().err


def test_the_hash_of_our_players_covers_their_factories() -> None:
    package = Path(ranks.__file__).parent
    for name, factory in PLAYERS.items():
        found = find_spec(factory.partition(":")[0])
        assert found is not None
        assert found.origin is not None
        source = Path(found.origin).relative_to(package).as_posix()
        assert name == "uci" or source.startswith(match_options.OUR_SOURCES), source


MATCH = "chess match --player random --player greedy"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("chess match --player random", "give --player twice"),
        ("chess match --player random --player greedie", "did you mean greedy"),
        (f"{MATCH} --rounds 0", "--rounds 1 or more"),
        (f"{MATCH} --concurrency 0", "--concurrency 1 or more"),
        (f"{MATCH} --tc soon", "40/60+0.5"),
        (f"{MATCH} --tc 10+0.1 --nodes 5", "exclude each other"),
        (f"{MATCH} --nodes 0", "a number above 0"),
        (f"{MATCH} --movetime nan", "a number above 0"),
        (f"{MATCH} --tc 1 --time-margin -1", "0 or more seconds"),
        (f"{MATCH} --sprt elo0=10,elo1=0", "elo0 must be below elo1"),
        (f"{MATCH} --openings nowhere.epd", "no such file"),
        (f"{MATCH} --max-plies 0", "no game is that short"),
        (f"{MATCH} --pgnout nowhere/games.pgn", "asked: --pgnout nowhere/games.pgn\nfound: No such file"),
        (f"{MATCH} --pgnout .", "found: Is a directory"),
        (f"chess ladder {__file__} --player random --player greedy", f"{__file__}: File exists"),
        (f"chess ladder {__file__}/pool --player random --player greedy", "Not a directory"),
        ("chess ladder pool --player random", "fewer than two players"),
        ("chess ladder pool --games-per-pair 0", "even number"),
        ("chess ladder pool --anchor random", "PLAYER=ELO"),
        ("chess ladder pool --anchor random=nan", "PLAYER=ELO"),
        ("chess ladder pool --anchor nobody=3", "anchor one of them"),
    ],
)
def test_bad_input_is_refused(
    command: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert all(part in error for part in ("asked: ", "found: ", "do: "))
    assert not (tmp_path / "pool").exists()


def test_ctrl_c_shows_the_table_and_ends_with_130(tmp_path: Path) -> None:
    pgn = tmp_path / "games.pgn"
    command = f"-m ranks chess match --player random --player greedy --rounds 9999 --concurrency 2 --pgnout {pgn}"
    command = [sys.executable, *command.split()]
    default_handler = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # the parent process may ignore SIGINT
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=default_handler) as match:
        assert match.stdout is not None
        head = [next(match.stdout) for _ in range(12)]
        match.send_signal(signal.SIGINT)
        rest = match.stdout.read().splitlines()
        assert match.wait(60) == 130
    assert any(line.startswith("Score of random vs greedy: ") for line in head)
    assert rest[-1].startswith("Ptnml(0-2): ")
    printed = [line for line in [*head, *rest] if line.startswith("Finished game ")]
    assert len(list(read_games(pgn))) == len(printed)


DIES = """
import sys
for line in sys.stdin:
    if line.startswith("uci\\n"):
        print("id name Mayfly 1.0\\noption name Skill type spin default 3 min 1 max 9\\n"
              "option name EvalFile type string default none\\nuciok", flush=True)
    if line.startswith("isready"):
        print("readyok", flush=True)
    if line.startswith("go"):
        sys.exit(1)
"""


def test_an_engine_that_dies_forfeits_each_game_and_the_match_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mayfly.py").write_text(DIES)
    word = f"uci:{sys.executable} {tmp_path}/mayfly.py@50?Skill=7"
    assert main(["chess", "match", "--player", word, "--player", "random", "--rounds", "2"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "Score of Mayfly 1.0, 50 nodes, Skill 7 vs random: 0 - 4 - 0  [0.000] 4" in out
    assert sum(line.startswith("Finished game ") for line in out) == 4
    forfeits = [line for line in out if line.startswith("Forfeit: Mayfly 1.0, 50 nodes, Skill 7 2 times (")]
    assert len(forfeits) == 2
    assert all("forfeits: " in line for line in forfeits)
