"""UCI programs as players: small ones that hang, die, lie or will not go."""

from __future__ import annotations

import io
import queue
import threading
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from ranks.chess.board import Board, move_to_uci
from ranks.chess.players.player import Forfeit, Info, Limits
from ranks.chess.uci.client import UciClient, forward_lines
from ranks.chess.uci.player import UciPlayer
from ranks.errors import UserError

from .fake_engine import SHORT_TIMEOUTS, command, processes_of, written, zombies


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
def test_a_program_that_fails_forfeits_and_leaves_nothing(fake: Path, fault: str, reason: str) -> None:
    player = UciPlayer(f"uci:{fault}", command(fake, fault), {}, timeouts=SHORT_TIMEOUTS)
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
        UciPlayer("uci:fake", command(fake, fault), {}, timeouts=SHORT_TIMEOUTS)
    assert found in error.value.found
    assert processes_of(fake) == []


@pytest.mark.parametrize("fault", ["none", "ignores quit", "has a child"])
def test_closing_leaves_no_process(fake: Path, fault: str) -> None:
    player = UciPlayer("uci:fake", command(fake, fault), {}, timeouts=SHORT_TIMEOUTS)
    choice = player.choose(Board(), Limits(nodes=1))
    assert (move_to_uci(choice.move), choice.score_cp, choice.depth) == ("e2e4", 13, 1)
    assert [move_to_uci(move) for move in choice.pv] == ["e2e4", "e7e5"]
    assert processes_of(fake)
    player.close()
    for _ in range(50):
        if not processes_of(fake):
            break
        time.sleep(0.02)
    assert processes_of(fake) == []
    assert zombies() == []


def test_a_program_that_is_forgotten_is_ended(fake: Path) -> None:
    program = UciClient(command(fake, "ignores quit"), SHORT_TIMEOUTS)
    assert processes_of(fake)
    del program
    assert processes_of(fake) == []


def test_stop_is_passed_on(fake: Path) -> None:
    program = UciClient(command(fake, "waits for stop"), SHORT_TIMEOUTS)
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    said: list[Info] = []
    choice = program.choose(Board(), Limits(infinite=True, should_stop=stop.is_set, on_info=said.append))
    assert stop.is_set()
    assert move_to_uci(choice.move) == "e2e4"
    assert [(info.depth, info.score_cp, len(info.pv)) for info in said] == [(1, 13, 2)]
    program.close()


def test_several_are_started_at_once(fake: Path) -> None:
    players: list[UciPlayer] = []

    def start() -> None:
        player = UciPlayer("uci:fake", command(fake, "none"), {}, timeouts=SHORT_TIMEOUTS)
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


def test_a_program_that_talks_without_a_score_is_not_silent(fake: Path) -> None:
    program = UciClient(command(fake, "talks"), replace(SHORT_TIMEOUTS, silent_s=1.0, move_s=60.0))
    began_s = time.monotonic()
    assert move_to_uci(program.choose(Board(), Limits(nodes=1)).move) == "e2e4"
    assert time.monotonic() - began_s > 1.0
    program.close()


def test_who_waits_longer_gets_the_late_move(fake: Path) -> None:
    player = UciPlayer("uci:fake", command(fake, "is late"), {}, timeouts=SHORT_TIMEOUTS)
    with pytest.raises(Forfeit, match="gave no move within"):
        player.choose(Board(), Limits(movetime_s=0.01))
    player.new_game(1)
    assert move_to_uci(player.choose(Board(), Limits(movetime_s=0.01, time_margin_s=20.0)).move) == "e2e4"
    player.close()


def test_lines_are_not_read_byte_by_byte() -> None:
    class Pipe(io.RawIOBase):
        """Gives whatever is asked for, and counts how often."""

        left, reads = b"info depth 1 score cp 13\n" * 1000, 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            self.reads += 1
            given = self.left[: len(buffer)]
            buffer[: len(given)] = given
            self.left = self.left[len(given) :]
            return len(given)

    pipe, lines = Pipe(), queue.Queue[str | None]()
    forward_lines(pipe, deque(maxlen=1), lines, threading.Event())  # type: ignore[arg-type]
    assert [lines.get() for _ in range(1001)] == ["info depth 1 score cp 13"] * 1000 + [None]
    assert pipe.reads < 100
