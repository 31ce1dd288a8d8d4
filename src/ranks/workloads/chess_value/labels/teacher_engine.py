"""The engine that gives scores: found, started with one thread and the smallest table, asked for positions.

A score is that of a search, or the static evaluation of Stockfish: the last line that its command `eval` writes,

    Final evaluation       +0.48 (white side) [with scaled NNUE, optimism, ...]

which needs no search and no cleared table: it takes a fifth of the time of a search to depth 4.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from ranks.chess.players.player import Forfeit, Limits
from ranks.chess.uci.client import UciClient, start_again_if_lost
from ranks.chess.uci.engine_process import OutputEnded
from ranks.chess.uci.go import go_command
from ranks.chess.uci.lines import parse_info
from ranks.chess.uci.player import find_command
from ranks.chess.uci.timeouts import SearchDeadline, Timeouts
from ranks.errors import UserError
from ranks.workloads.chess_value.config import LIMIT, STATIC
from ranks.workloads.chess_value.labels.label import NO_SCORE
from ranks.workloads.chess_value.labels.units import clipped_cp

LINES_KEPT = 300
"""Of a search: the last of them holds its score."""
STATIC_AHEAD = 32
"""Positions that an engine has at a time for static evaluations."""
SEARCH_AHEAD = 2
"""Positions that an engine has at a time for searches. It is sent the second when the first search ends."""
FINAL = b"Final evaluation"
WITHOUT = "or train with --labels search or --labels outcome"


def label_limits(text: str) -> Limits | None:
    """nodes:1000 or depth:8; None for static. Raises UserError."""
    if text == STATIC:
        return None
    match = LIMIT.fullmatch(text)
    if match is None:
        found = "it is nodes:N, depth:D or static"
        raise UserError(f"the limit '{text}'", found, "write nodes:1000 or depth:8, for example")
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


class PositionScore(NamedTuple):
    """The score of a position in the units of `units`; NO_SCORE where two engines failed."""

    number: int
    cp: int


class TeacherEngine:
    """A running engine. It dies with the thread that starts it.

    Each position is searched after `ucinewgame`, with one thread and the smallest table, so a score does not depend on
    what the engine has seen before. A static evaluation searches nothing, and needs no clearing."""

    def __init__(self, command: list[str], limits: Limits | None, timeouts: Timeouts) -> None:
        """Start it. `limits`: of a search; None for static evaluations. Raises Forfeit."""
        self._limits, self._timeouts = limits or Limits(), timeouts
        self._is_static = limits is None
        self._arguments = command[1:]
        self._go = "eval" if limits is None else go_command(limits, white_to_move=True)
        self.client = UciClient(command, timeouts, dies_with_us=True)
        for name in ("Threads", "Hash"):
            option = self.client.options.get(name.lower())
            if option is not None:
                self.client.set_option(option.name, str(option.least if option.least is not None else 1))
        self.client.ready()
        self.most_tasks = STATIC_AHEAD if self._is_static else SEARCH_AHEAD
        self.tasks: deque[PositionTask] = deque()
        """What it works on, the first one now."""
        self._lines: list[bytes] = []
        self._deadline = SearchDeadline(timeouts, self._limits, 0.0)
        if self._is_static:
            self._check_static()

    @property
    def identity(self) -> str:
        """Its name and version, the file of its net where it says so, and a hash of its command's arguments, which can
        name another net: 'Stockfish 15.1, nn-ad9b42354671.nnue', 'Lc0 v0.31, arguments 0a1b2c3d'."""
        net = self.client.options.get("evalfile")
        nets = [net.default] if net is not None and net.default else []
        digest = hashlib.sha256("\0".join(self._arguments).encode()).hexdigest()[:8]
        return ", ".join([self.client.name, *nets, *([f"arguments {digest}"] if self._arguments else [])])

    def give(self, tasks: Sequence[PositionTask]) -> None:
        """Let it score positions after those that it has. Raises Forfeit."""
        was_idle = not self.tasks
        self.tasks.extend(tasks)
        if was_idle:
            self._lines = []
            self._deadline = SearchDeadline(self._timeouts, self._limits, time.monotonic())
        try:
            if self._is_static:
                self.client.process.send("".join(f"position fen {task.fen}\n{self._go}\n" for task in tasks))
            elif was_idle:
                self._search(self.tasks[0])
        except OSError as error:
            raise self.client.gone() from error

    def _search(self, task: PositionTask) -> None:
        """Send a position, after clearing the engine. Raises OSError where the engine has ended."""
        self.client.process.send(f"ucinewgame\nisready\nposition fen {task.fen}\n{self._go}\n")

    def receive(self, *, ready: bool) -> list[PositionScore]:
        """The scores that are known now, in our units; their tasks are done. Does not wait. Raises Forfeit.

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
        scores = self._static_scores(lines) if self._is_static else self._search_scores(lines)
        if scores:
            self._deadline = SearchDeadline(self._timeouts, self._limits, now_s)
        elif self._deadline.expired(now_s):
            raise self.client.forfeit(f"gave no score within its time ({self._go})")
        return scores

    def _search_scores(self, lines: list[bytes]) -> list[PositionScore]:
        """The score of its first task, if the search has ended. The next search begins before the score is read."""
        self._lines = [*self._lines, *lines][-LINES_KEPT:]
        if not any(line.startswith(b"bestmove") for line in lines):
            return []
        ended, self._lines = self._lines, []
        if len(self.tasks) > 1:
            with suppress(OSError):  # the engine ended after its answer, which the next look at it finds
                self._search(self.tasks[1])
        score = self._score(ended)
        return [PositionScore(self.tasks.popleft().number, score)]

    def _static_scores(self, lines: list[bytes]) -> list[PositionScore]:
        """The static evaluations that have come, for the side to move, up to the first line that is none."""
        scores: list[PositionScore] = []
        lines, self._lines = [*self._lines, *lines], []
        for at, line in enumerate(lines):
            if line.startswith(FINAL) and self.tasks:
                try:
                    cp = self._static_cp(line, self.tasks[0].fen)
                except Forfeit:
                    if not scores:
                        raise
                    self._lines = lines[at:]  # the next look at the engine finds it; these scores count
                    break
                scores.append(PositionScore(self.tasks.popleft().number, cp))
        return scores

    def _static_cp(self, line: bytes, fen: str) -> int:
        try:
            return static_cp(line, fen)
        except (ValueError, IndexError, OverflowError):
            shown = line.decode(errors="replace")[:80]
            raise self.client.forfeit(f"wrote '{shown}', which has no evaluation in pawns") from None

    def _check_static(self) -> None:
        """Evaluate the start position. Raises Forfeit where the engine cannot."""
        try:
            self.client.process.send("position startpos\neval\n")
        except OSError as error:
            raise self.client.gone() from error
        self.client.ready()
        found = [line for line in self.client.process.last_lines if line.startswith(FINAL.decode())]
        if not found:
            raise self.client.forfeit("has no command `eval` as Stockfish has, which writes 'Final evaluation'")
        self._static_cp(found[-1].encode(), "")

    def _score(self, lines: list[bytes]) -> int:
        """The last exact score of the best line, among the lines of a search."""
        for line in reversed(lines):
            if b" score " in line and line.startswith(b"info "):
                info = parse_info(line[5:].partition(b" pv ")[0].decode(errors="replace"), None)
                if info is not None and info.multipv == 1:
                    return clipped_cp(info.score_cp, info.mate_in)
        raise self.client.forfeit("gave no score")


def static_cp(line: bytes, fen: str) -> int:
    """The score for the side to move in the line that ends a static evaluation; NO_SCORE for a position in check.

    Raises ValueError, IndexError or OverflowError for another line, also for one that is cut off in its number."""
    word, side, *_ = line.removeprefix(FINAL).lstrip(b": ").split()
    if not side.startswith(b"("):
        raise ValueError(line)
    if word == b"none":
        return NO_SCORE
    white_cp = round(100 * float(word))
    return clipped_cp(-white_cp if " b " in fen else white_cp, None)


def start_teacher(command: list[str], limits: Limits | None, timeouts: Timeouts) -> TeacherEngine:
    """Start an engine. Raises UserError where the program is none."""
    try:
        return start_again_if_lost(lambda: TeacherEngine(command, limits, timeouts))
    except Forfeit as fault:
        do = f"check that it is a UCI engine: type its name, then `uci`; it answers `uciok`; {WITHOUT}"
        raise UserError(f"labels of the engine '{command[0]}'", f"the engine {fault}", do) from fault
