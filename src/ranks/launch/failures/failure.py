"""Why one rank ended or hangs, and the lines that tell the user."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal

from ranks.errors import GaveUp, UserError

Kind = Literal["signal", "user", "user_error", "gave_up", "peer", "exit", "device", "hang", "mismatch", "left"]
"""`peer`: lost its connection to another rank. `device`: the GPU failed. `mismatch`: the ranks were in different
collectives. `left`: ended early with exit code 0."""
RESTARTED: frozenset[Kind] = frozenset({"signal", "peer", "device", "hang", "mismatch"})
"""Kinds after which another start may succeed: they come from outside the program, or from the order of events."""
EXIT_CODES: dict[str, int] = {"user_error": UserError.exit_code, "gave_up": GaveUp.exit_code}
"""Every other kind has exit code 1."""
FRAME = re.compile(r'  File "(.*)", line (\d+)')
SHOWN_FRAMES = 3


@dataclass(frozen=True)
class Failure:
    """Why one rank ended or hangs.

    `where`: file:line or empty. `frames`: the lines of the traceback, outermost call first. `traceback`: as Python
    prints it, with notes and causes; empty where the rank could not write it. `asked`, `found`, `do`: the three parts
    of a UserError.
    """

    rank: int
    kind: Kind
    type: str
    message: str
    where: str = ""
    frames: tuple[str, ...] = ()
    traceback: str = ""
    time_s: float = 0.0
    asked: str = ""
    found: str = ""
    do: str = ""
    exit_code: int | None = None
    """Of a rank that ended by `sys.exit`, which is no error of this package: one rank ends the command with it."""
    at_start: bool = False
    """The ranks had only just been started."""

    def same_cause(self, other: Failure) -> bool:
        """Whether both have the same error text, on any rank. A SIGKILL comes from outside and never counts."""
        if "SIGKILL" in (self.type, other.type) or {self.kind, other.kind} & {"peer", "hang"}:
            return False
        return (self.kind, self.type, self.message, self.where) == (other.kind, other.type, other.message, other.where)

    def lines(self, *, full: bool, alone: bool = False) -> list[str]:
        """The report for the user: the cause with rank and file:line, then the traceback.

        `full`: all frames, else the last three. `alone`: of the only rank, whose exception is shown as Python shows it.
        A UserError is three lines without a traceback.
        """
        if self.kind == "user_error":
            return [f"asked: {self.asked}", f"found: {self.found}", f"   do: {self.do}"]
        if alone and self.exit_code is not None:
            return []  # Python has printed the message of `sys.exit`
        if alone and self.kind == "gave_up":
            return [f"gave up: {self.message}"]
        if alone and self.kind == "user" and self.traceback:
            return self.traceback.splitlines()
        at = f" (at {short(self.where)})" if self.where else ""
        if self.kind == "signal":
            return [f"rank {self.rank} {self.message}{at}"]
        if self.kind in ("exit", "left"):
            return [f"rank {self.rank} {self.message}"]
        if self.kind == "peer":
            return [f"rank {self.rank} lost the other ranks{at}: {_first_line(self.message)}"]
        if self.kind == "hang":
            return [f"rank {self.rank} hangs{at}: {self.message}", *self._shown_frames(full)]
        cause = self.message if self.kind == "gave_up" else f"{self.type}: {self.message}"
        verb = "lost its device" if self.kind == "device" else "failed"
        return [f"rank {self.rank} {verb}{at}: {cause}", *self._shown_frames(full)]

    def _shown_frames(self, full: bool) -> tuple[str, ...]:
        starts = [i for i, line in enumerate(self.frames) if FRAME.match(line)]
        return self.frames[starts[-SHOWN_FRAMES:][0] if starts and not full else 0 :]


def short(where: str) -> str:
    """file:line, relative to the working folder where it is inside."""
    return where.removeprefix(os.getcwd() + os.sep)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
