"""The UCI client with engines that hang, die, move illegally or do not exit."""

from __future__ import annotations

import math
import shlex
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ranks.chess.board import Board, move_to_uci
from ranks.chess.players.player import Clock, Forfeit, Info, Limits
from ranks.chess.uci.client import UciClient
from ranks.chess.uci.engine_process import LONGEST_LINE, EngineProcess, OutputEnded
from ranks.chess.uci.player import UciPlayer
from ranks.chess.uci.timeouts import SearchDeadline, Timeouts
from ranks.errors import UserError
from tests.chess.uci.fake_engine import SHORT_TIMEOUTS, TIMEOUTS, command, processes_of, written, zombies
from tests.chess.uci.uci_conversation import Conversation


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    return written(tmp_path)


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
def test_an_engine_that_fails_forfeits_and_leaves_no_process(fake: Path, fault: str, reason: str) -> None:
    earlier = zombies()  # of other tests
    player = UciPlayer(f"uci:{fault}", command(fake, fault), {}, timeouts=SHORT_TIMEOUTS)
    assert player.program == "Fake 1.0"
    player.new_game(0)
    with pytest.raises(Forfeit) as forfeit:
        player.choose(Board(), Limits(nodes=1))
    assert reason in str(forfeit.value)
    assert "\n" not in str(forfeit.value)
    player.new_game(1)  # it is restarted for the next game if it died
    assert player.program == "Fake 1.0"
    player.close()
    player.close()
    assert processes_of(fake) == []
    assert set(zombies()) <= set(earlier)


@pytest.mark.parametrize(
    ("fault", "timeouts", "found"),
    [
        ("mute", {"start_s": 3.0}, "did not say uciok within 3 s, after the line 'noise on stderr"),
        ("dies at once", {}, "died with exit code 1, after the line 'no license'"),
        ("never ready", {"ready_s": 0.5}, "did not say readyok within 0.5 s"),
    ],
)
def test_a_program_that_is_not_an_engine_is_refused(
    fake: Path, fault: str, timeouts: dict[str, float], found: str
) -> None:
    with pytest.raises(UserError) as error:
        UciPlayer("uci:fake", command(fake, fault), {}, timeouts=replace(TIMEOUTS, **timeouts))
    assert found in error.value.found
    assert processes_of(fake) == []


@pytest.mark.parametrize("fault", ["none", "ignores quit", "has a child"])
def test_closing_leaves_no_process(fake: Path, fault: str) -> None:
    earlier = zombies()  # of other tests
    player = UciPlayer("uci:fake", command(fake, fault), {}, timeouts=TIMEOUTS)
    choice = player.choose(Board(), Limits(nodes=1))
    assert (move_to_uci(choice.move), choice.score_cp, choice.depth) == ("e2e4", 13, 1)
    assert [move_to_uci(move) for move in choice.pv] == ["e2e4", "e7e5"]
    assert processes_of(fake)
    player.close()
    for _ in range(500):  # a killed orphan is reaped by init
        if not processes_of(fake):
            break
        time.sleep(0.02)
    assert processes_of(fake) == []
    assert set(zombies()) <= set(earlier)


def test_an_engine_without_a_reference_is_killed(fake: Path) -> None:
    client = UciClient(command(fake, "ignores quit"), TIMEOUTS)
    assert processes_of(fake)
    del client
    assert processes_of(fake) == []


def test_stop_is_sent_to_the_engine(fake: Path) -> None:
    client = UciClient(command(fake, "waits for stop"), TIMEOUTS)
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    infos: list[Info] = []
    choice = client.choose(Board(), Limits(infinite=True, should_stop=stop.is_set, on_info=infos.append))
    assert stop.is_set()
    assert move_to_uci(choice.move) == "e2e4"
    assert [(info.depth, info.score_cp, len(info.pv)) for info in infos] == [(1, 13, 2)]
    client.close()


def test_several_are_started_at_once(fake: Path) -> None:
    players: list[UciPlayer] = []

    def start() -> None:
        player = UciPlayer("uci:fake", command(fake, "none"), {}, timeouts=TIMEOUTS)
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


def test_an_engine_that_writes_lines_without_a_score_is_not_silent(fake: Path) -> None:
    deadline = SearchDeadline(replace(TIMEOUTS, silent_s=1.0, move_s=60.0), Limits(nodes=1), 100.0)
    for line in range(1, 16):
        assert not deadline.expired(100.0 + 0.1 * line)
        deadline.line_received(100.0 + 0.1 * line)
    assert not deadline.expired(102.4)
    assert deadline.expired(102.5)
    client = UciClient(command(fake, "talks"), TIMEOUTS)
    assert move_to_uci(client.choose(Board(), Limits(nodes=1)).move) == "e2e4"
    client.close()


def test_the_deadline_of_a_search() -> None:
    timeouts = Timeouts(late_s=5.0, silent_s=60.0, move_s=600.0)

    def expires_s(deadline: SearchDeadline, talks: bool = True) -> float:
        for now_s in range(10_000):
            if talks:
                deadline.line_received(now_s)
            if deadline.expired(now_s):
                return now_s
        return math.inf

    assert expires_s(SearchDeadline(timeouts, Limits(nodes=1), 0.0)) == 600
    assert expires_s(SearchDeadline(timeouts, Limits(nodes=1), 0.0), talks=False) == 60
    assert expires_s(SearchDeadline(timeouts, Limits(movetime_s=2.0), 0.0), talks=False) == 7
    timed = Limits(movetime_s=90.0, clock=Clock(70.0, 9.0), time_margin_s=4.0)
    assert expires_s(SearchDeadline(timeouts, timed, 0.0), talks=False) == 79
    assert expires_s(SearchDeadline(timeouts, Limits(clock=Clock(-3.0, 9.0)), 0.0)) == 5
    endless = SearchDeadline(timeouts, Limits(infinite=True), 0.0)
    assert expires_s(endless, talks=False) == math.inf, "it waits for stop, also after its last line"
    stopped = SearchDeadline(timeouts, Limits(infinite=True), 0.0)
    stopped.stop_sent(10.0)
    assert expires_s(stopped) == 15


def test_a_longer_time_margin_waits_for_a_late_move(fake: Path) -> None:
    player = UciPlayer("uci:fake", command(fake, "is late"), {}, timeouts=SHORT_TIMEOUTS)
    with pytest.raises(Forfeit, match="gave no move within"):
        player.choose(Board(), Limits(movetime_s=0.01))
    player.new_game(1)
    assert move_to_uci(player.choose(Board(), Limits(movetime_s=0.01, time_margin_s=60.0)).move) == "e2e4"
    player.close()


def test_an_engine_that_reads_and_writes_much_at_once_does_not_block(tmp_path: Path) -> None:
    """It echoes each line before it reads the next, so both pipes fill."""
    echo = tmp_path / "echo.py"
    echo.write_text("import sys\nfor line in sys.stdin: sys.stdout.write(line)\nsys.stdout.write('end')")
    process = EngineProcess([sys.executable, "-S", "-E", str(echo)])
    process.send("x" * 99 + "\n" + "y" * 999 * 999 + "\n")
    assert process.next_line(60.0) == "x" * 99
    assert process.next_line(60.0) == "y" * LONGEST_LINE
    process.kill()
    assert not process.alive
    with pytest.raises(OutputEnded):
        [process.next_line(60.0) for _ in range(100)]


def kill_while_it_hangs(argv: list[str], fake: Path) -> None:
    """Start a command whose engine hangs, `kill -9` the command meanwhile, and wait for the end of the engine."""
    hanging = fake.with_name("options.txt.hangs")
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as parent:
        while not hanging.exists():
            assert parent.poll() is None
            time.sleep(0.02)
        assert processes_of(fake)
        parent.kill()
    for _ in range(500):
        if not processes_of(fake):
            break
        time.sleep(0.02)
    assert processes_of(fake) == []


RESTARTED = """
import sys
from ranks.chess.board import Board
from ranks.chess.players.player import Limits
from ranks.chess.uci.player import UciPlayer
player = UciPlayer("uci:fake", sys.argv[1:], {})
player.close()
player.new_game(0)
player.choose(Board(), Limits(nodes=1))
"""


def test_a_restarted_engine_that_hangs_ends_with_the_process_that_started_it(fake: Path) -> None:
    kill_while_it_hangs([sys.executable, "-c", RESTARTED, *command(fake, "hangs")], fake)


def test_an_engine_that_hangs_in_a_match_ends_with_the_match(fake: Path) -> None:
    word = f"uci:{shlex.join(command(fake, 'hangs'))}@1"
    match = ["chess", "match", "--player", word, "--player", "random", "--rounds", "1"]
    kill_while_it_hangs([sys.executable, "-m", "ranks", *match], fake)


def test_an_engine_behind_our_own_outlives_its_loading(fake: Path) -> None:
    """Our engine creates its player in a thread."""
    with Conversation(lambda: UciPlayer("uci:fake", command(fake, "none"), {}, nodes=1, timeouts=TIMEOUTS)) as gui:
        gui.ask("isready", "readyok")
        assert gui.ask("go nodes 1", "bestmove")[-1].startswith("bestmove e2e4")
    assert processes_of(fake) == []
