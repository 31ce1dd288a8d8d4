"""UCI programs as players: real ones, and small ones that hang, die, lie or will not go."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

from ranks.chess.board import Board, move_name
from ranks.chess.players.player import Clock, Forfeit, Info, Limits
from ranks.chess.players.program import ProgramPlayer, find_command, install
from ranks.chess.players.words import make_player
from ranks.chess.uci.client import Patience, UciProgram, go_command
from ranks.chess.uci.lines import Option, format_info, parse_info, parse_option
from ranks.errors import UserError

IMPATIENT = Patience(start_s=3.0, ready_s=1.0, late_s=0.3, silent_s=0.5, move_s=1.0, quit_s=0.3)
FAKE = """
import os, signal, sys, time
def say(line):
    print(line, flush=True)
fault = sys.argv[1]
print("noise on stderr " * 20000, file=sys.stderr)
if fault == "mute": time.sleep(60)
if fault == "dies at once": sys.exit("no license")
for line in sys.stdin:
    words = line.split()
    if words[0] == "uci":
        say("Fake engine by nobody")
        say("id name Fake 1.0")
        say("option name Skill Level type spin default 5 min 0 max 20")
        say("option name Style type combo default Solid var Solid var Risky Play")
        say("option name Own Book type check default false")
        say("option name Broken type spin default x min y max")
        say("uciok")
    elif words[0] == "isready":
        if fault == "never ready": time.sleep(60)
        say("readyok")
    elif words[0] == "setoption":
        print(line.strip(), file=open(sys.argv[2], "a"))
    elif words[0] == "go":
        moves = line.split()
        if fault == "hangs": time.sleep(60)
        if fault == "dies": sys.exit(3)
        if fault == "crashes": os.kill(os.getpid(), signal.SIGSEGV)
        if fault == "closes its output": os.close(1); time.sleep(60)
        if fault == "closes its input": os.close(0); time.sleep(60)
        if fault == "floods":
            while True: say("# thinking hard about nothing " * 10)
        if fault == "one long line":
            while True: sys.stdout.write("x" * 100000)
        say("info depth 1 score cp 13 pv e2e4 e7e5 e7e5")
        say("info string \\udcff\\udcfe".encode("utf-8", "surrogateescape").decode("latin-1"))
        say("info depth 2 score cp 99 lowerbound pv d2d4")
        say("info depth two score cp lots")
        if fault == "moves illegally": say("bestmove e2e5"); continue
        if fault == "resigns": say("bestmove (none)"); continue
        if fault == "says nothing": say("bestmove"); continue
        if fault == "waits for stop":
            while "stop" not in sys.stdin.readline(): pass
        if fault == "has a child":
            if os.fork() == 0: time.sleep(60)
            open(sys.argv[2], "a").close()
        say("bestmove e2e4 ponder e7e5")
    elif words[0] == "quit" and fault != "ignores quit":
        break
while fault == "ignores quit": time.sleep(1)
"""


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    path = tmp_path / "fake.py"
    path.write_text(FAKE)
    return path


def command(fake: Path, fault: str) -> list[str]:
    return [sys.executable, "-S", "-E", str(fake), fault, str(fake.with_name("told"))]


def processes_of(fake: Path) -> list[int]:
    """The processes that run a program, zombies and orphans too."""
    found: list[int] = []
    for entry in Path("/proc").iterdir() if Path("/proc").exists() else ():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str(fake).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def zombies() -> list[str]:
    """Children of this process that have ended and are not reaped."""
    found: list[str] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state == "Z" and int(parent) == os.getpid():
                found.append(stat.parent.name)
    return found


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("hangs", "gave no move within"),
        ("dies", "died with exit code 3"),
        ("crashes", "died by SIGSEGV"),
        ("closes its output", "closed its output"),
        ("closes its input", "gave no move within"),
        ("floods", "gave no move within"),
        ("one long line", "gave no move within"),
        ("moves illegally", "moved illegally: bestmove e2e5 in rnbq"),
        ("resigns", "moved illegally: bestmove (none)"),
        ("says nothing", "moved illegally: bestmove (nothing)"),
    ],
)
def test_a_program_that_fails_forfeits_and_leaves_nothing(fake: Path, fault: str, reason: str) -> None:
    player = ProgramPlayer(f"uci:{fault}", command(fake, fault), {}, patience=IMPATIENT)
    assert player.program == "Fake 1.0"
    player.new_game(0)
    began_s = time.monotonic()
    with pytest.raises(Forfeit) as forfeit:
        player.choose(Board(), Limits(nodes=1))
    assert reason in str(forfeit.value)
    assert "\n" not in str(forfeit.value)
    assert time.monotonic() - began_s < 5
    player.new_game(1)  # the match goes on: it is started again if it is gone
    assert player.program == "Fake 1.0"
    player.close()
    player.close()
    assert processes_of(fake) == []
    assert zombies() == []


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("mute", "did not say uciok within 3 s, after the line 'noise on stderr"),
        ("dies at once", "died with exit code 1, after the line 'no license'"),
        ("never ready", "did not say readyok within 1 s"),
    ],
)
def test_what_is_no_uci_program_is_refused(fake: Path, fault: str, found: str) -> None:
    with pytest.raises(UserError) as error:
        ProgramPlayer("uci:fake", command(fake, fault), {}, patience=IMPATIENT)
    assert found in error.value.found
    assert processes_of(fake) == []


@pytest.mark.parametrize("fault", ["none", "ignores quit", "has a child"])
def test_closing_leaves_no_process(fake: Path, fault: str) -> None:
    player = ProgramPlayer("uci:fake", command(fake, fault), {}, patience=IMPATIENT)
    choice = player.choose(Board(), Limits(nodes=1))
    assert (move_name(choice.move), choice.score_cp, choice.depth) == ("e2e4", 13, 1)
    assert [move_name(move) for move in choice.pv] == ["e2e4", "e7e5"]
    assert processes_of(fake)
    player.close()
    for _ in range(50):
        if not processes_of(fake):
            break
        time.sleep(0.02)
    assert processes_of(fake) == []
    assert zombies() == []


def test_a_program_that_is_forgotten_is_ended(fake: Path) -> None:
    program = UciProgram(command(fake, "ignores quit"), IMPATIENT)
    assert processes_of(fake)
    del program
    assert processes_of(fake) == []


def test_stop_is_passed_on(fake: Path) -> None:
    program = UciProgram(command(fake, "waits for stop"), IMPATIENT)
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    said: list[Info] = []
    choice = program.choose(Board(), Limits(infinite=True, should_stop=stop.is_set, on_info=said.append))
    assert stop.is_set()
    assert move_name(choice.move) == "e2e4"
    assert [(info.depth, info.score_cp, len(info.pv)) for info in said] == [(1, 13, 2)]
    program.close()


def test_options_are_checked_against_what_the_program_has(fake: Path) -> None:
    told = fake.with_name("told")
    options = {"skill level": "20", "STYLE": "risky play", "Own Book": "true"}
    player = ProgramPlayer("uci:fake", command(fake, "none"), options, patience=IMPATIENT)
    player.close()
    assert told.read_text().splitlines() == [
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
            ProgramPlayer("uci:fake", command(fake, "none"), options, patience=IMPATIENT)
        assert found in error.value.found
        assert do in error.value.do
    assert processes_of(fake) == []


def test_several_are_started_at_once(fake: Path) -> None:
    players: list[ProgramPlayer] = []

    def start() -> None:
        player = ProgramPlayer("uci:fake", command(fake, "none"), {}, patience=IMPATIENT)
        player.choose(Board(), Limits(nodes=1))
        players.append(player)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(players) == 6
    for player in players:
        player.close()
    assert processes_of(fake) == []


@pytest.mark.parametrize(
    ("limits", "white", "line"),
    [
        (Limits(), True, "go infinite"),
        (Limits(nodes=100, depth=5), True, "go nodes 100 depth 5"),
        (Limits(movetime_s=0.25), True, "go movetime 250"),
        (Limits(clock=Clock(1.5, 2.0, 0.1, 0.2)), True, "go wtime 1500 winc 100 btime 2000 binc 200"),
        (Limits(clock=Clock(1.5, 2.0, 0.1, 0.2)), False, "go wtime 2000 winc 200 btime 1500 binc 100"),
        (Limits(clock=Clock(-1.0, 2.0, moves_to_go=3)), True, "go wtime 1 winc 0 btime 2000 binc 0 movestogo 3"),
    ],
)
def test_limits_as_a_go_line(limits: Limits, white: bool, line: str) -> None:
    assert go_command(limits, white) == line


def test_lines_are_read_and_written() -> None:
    board = Board()
    info = parse_info("depth 5 seldepth 9 multipv 2 score mate -3 nodes 77 nps 1000 time 250 pv d2d4 d7d5 xyz", board)
    assert info is not None
    assert (info.depth, info.score_cp, info.mate_in, info.nodes, info.elapsed_s) == (5, None, -3, 77, 0.25)
    assert (info.line, [move_name(move) for move in info.pv]) == (2, ["d2d4", "d7d5"])
    text = format_info(info, ["d2d4", "d7d5"], several_lines=True)
    assert text == "info depth 5 multipv 2 score mate -3 nodes 77 nps 308 time 250 pv d2d4 d7d5"
    assert parse_info(text.removeprefix("info "), board) == info
    for nothing in ["", "depth 3", "string score cp 3", "score cp", "score cp many", "depth 1 score cp 3 upperbound"]:
        assert parse_info(nothing, board) is None
    option = parse_option("option name Clear Hash type button")
    assert option == Option("Clear Hash", "button")
    assert option.line() == "option name Clear Hash type button"
    combo = parse_option("option name A B type combo default x y var x y var z")
    assert combo == Option("A B", "combo", "x y", choices=("x y", "z"))
    assert parse_option("option name type spin") is None
    assert parse_option("info depth 1") is None


def test_programs_are_found_or_the_way_to_get_them_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert install("/opt/lc0") == "install it: brew install lc0"
    for word in ["uci", "uci:", "uci:'", "uci:my@0"]:
        with pytest.raises(UserError):
            make_player(word)


STOCKFISH = shutil.which("stockfish") or shutil.which("stockfish", path="/usr/games:/usr/local/bin:/opt/homebrew/bin")


@pytest.mark.skipif(STOCKFISH is None, reason="Stockfish is not installed")
def test_stockfish_plays() -> None:
    player = make_player("uci:stockfish@500?Threads=1&Hash=16")
    player.new_game(0)
    mate = Board("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1")
    choice = player.choose(mate, Limits(clock=Clock(60, 60)))
    assert (move_name(choice.move), choice.mate_in) == ("d1d8", 1)
    player.new_game(1)
    first = player.choose(Board(), Limits())
    player.new_game(2)
    assert player.choose(Board(), Limits()) == first
    assert first.nodes < 1500
    player.close()
