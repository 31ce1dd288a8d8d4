"""The engine that gives scores: found, started with one thread and the smallest table, asked for one position."""

from __future__ import annotations

import time
from typing import NamedTuple

from ranks.chess.players.player import Forfeit, Limits
from ranks.chess.uci.client import UciClient, start_again_if_killed
from ranks.chess.uci.engine_process import OutputEnded
from ranks.chess.uci.go import go_command
from ranks.chess.uci.lines import parse_info
from ranks.chess.uci.player import find_command
from ranks.chess.uci.timeouts import SearchDeadline, Timeouts
from ranks.errors import UserError
from ranks.workloads.chess_value.config import LIMIT
from ranks.workloads.chess_value.labels.units import clipped_cp

LINES_KEPT = 300
"""Of a search: the last of them holds its score."""
WITHOUT = "or train with --labels search or --labels outcome"


def limits_of(text: str) -> Limits:
    """nodes:1000 or depth:8. Raises UserError."""
    match = LIMIT.fullmatch(text)
    if match is None:
        raise UserError(f"the limit '{text}'", "it is nodes:N or depth:D", "write nodes:1000 or depth:8, for example")
    number = int(match[2])
    return Limits(nodes=number) if match[1] == "nodes" else Limits(depth=number)


def find_teacher(command: str) -> list[str]:
    """The command line of an engine on PATH or in the usual folders. Raises UserError with the install line."""
    try:
        return find_command(command, f"uci:{command}")
    except UserError as error:
        raise UserError(f"labels of the engine '{command}'", error.found, f"{error.do}; {WITHOUT}") from None


class PositionTask(NamedTuple):
    """A position that waits for its score."""

    number: int
    fen: str
    fault: str = ""
    """How the engine failed that tried it before."""


class TeacherEngine:
    """A running engine. It dies with the thread that starts it.

    Each position is searched after `ucinewgame`, with one thread and the smallest table, so a score does not depend on
    what the engine has seen before."""

    def __init__(self, command: list[str], limits: Limits, timeouts: Timeouts) -> None:
        """Start it. Raises Forfeit."""
        self._limits, self._timeouts = limits, timeouts
        self._go = go_command(limits, white_to_move=True)
        self.client = UciClient(command, timeouts, dies_with_us=True)
        for name in ("Threads", "Hash"):
            option = self.client.options.get(name.lower())
            if option is not None:
                self.client.set_option(option.name, str(option.least if option.least is not None else 1))
        self.client.ready()
        self.task: PositionTask | None = None
        """What it searches."""
        self._lines: list[bytes] = []
        self._deadline = SearchDeadline(timeouts, limits, 0.0)

    @property
    def identity(self) -> str:
        """Its name and version, and the file of its net where it says so: 'Stockfish 15.1, nn-ad9b42354671.nnue'."""
        net = self.client.options.get("evalfile")
        return ", ".join([self.client.name, *([net.default] if net is not None and net.default else [])])

    def give(self, task: PositionTask) -> None:
        """Let it search a position. Raises Forfeit."""
        self.task, self._lines = task, []
        self._deadline = SearchDeadline(self._timeouts, self._limits, time.monotonic())
        try:
            self.client.process.send(f"ucinewgame\nisready\nposition fen {task.fen}\n{self._go}\n")
        except OSError as error:
            raise self.client.gone() from error

    def receive(self, *, ready: bool) -> int | None:
        """The score of its task in our units once it is known. Does not wait. Raises Forfeit.

        ready: its standard output can be read; else all that it writes is looked at."""
        now_s = time.monotonic()
        if ready:
            self.client.process.read_output()
        if ready or self.client.process.wait(0):
            self._deadline.line_received(now_s)
        try:
            lines = self.client.process.take_lines()
        except OutputEnded:
            raise self.client.gone() from None
        for at, line in enumerate(lines):
            if line.startswith(b"bestmove"):
                return self._score(lines[:at])
        self._lines = [*self._lines, *lines][-LINES_KEPT:]
        if self._deadline.expired(now_s):
            raise self.client.forfeit(f"gave no score within its time ({self._go})")
        return None

    def _score(self, lines: list[bytes]) -> int:
        """The last exact score of the best line, among those before `bestmove`."""
        for line in reversed([*self._lines, *lines]):
            if b" score " in line and line.startswith(b"info "):
                info = parse_info(line[5:].partition(b" pv ")[0].decode(errors="replace"), None)
                if info is not None and info.multipv == 1:
                    self.task = None
                    return clipped_cp(info.score_cp, info.mate_in)
        raise self.client.forfeit("gave no score")


def start_teacher(command: list[str], limits: Limits, timeouts: Timeouts) -> TeacherEngine:
    """Start an engine. Raises UserError where the program is none."""
    try:
        return start_again_if_killed(lambda: TeacherEngine(command, limits, timeouts))
    except Forfeit as fault:
        do = f"check that it is a UCI engine: type its name, then `uci`; it answers `uciok`; {WITHOUT}"
        raise UserError(f"labels of the engine '{command[0]}'", f"the engine {fault}", do) from fault
