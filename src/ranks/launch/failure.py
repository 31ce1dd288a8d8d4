"""Why a rank ended: from the error file that it wrote, or from its exit code and the end of its output."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from ranks.errors import GaveUp, UserError

Kind = Literal["signal", "user", "user_error", "gave_up", "peer", "exit"]
EXIT_CODES: dict[str, int] = {"user_error": UserError.exit_code, "gave_up": GaveUp.exit_code}
"""Every other kind has exit code 1."""

PEER_LOST = re.compile(
    r"Connection (closed|reset) by peer|connection closed by remote|Broken pipe|Connection refused"
    r"|gloo[/\\]transport|ncclRemoteError|remote process exited|NCCL communicator was aborted"
    r"|[Ff]ailed to recv, got 0 bytes|Socket Timeout|client socket has (failed|timed out)"
    r"|Timed out waiting .* (recv|send|connect)|Application timeout caused pair closure",
)
"""Errors of a rank that lost its connection to another rank (gloo, NCCL and TCPStore of torch 2.11 to 2.13)."""

PACKAGE = str(Path(__file__).parents[1])
FRAME = re.compile(r'  File "(.*)", line (\d+)')
SHOWN_FRAMES = 3


@dataclass(frozen=True)
class Failure:
    """Why one rank ended.

    `where`: file:line or empty. `frames`: the lines of the traceback, outermost call first. `asked`, `found`, `do`: the
    three parts of a UserError.
    """

    rank: int
    kind: Kind
    type: str
    message: str
    where: str = ""
    frames: tuple[str, ...] = ()
    time_s: float = 0.0
    asked: str = ""
    found: str = ""
    do: str = ""
    at_start: bool = False
    """The ranks had only just been started."""

    def same_cause(self, other: Failure) -> bool:
        """Whether both have the same error text, on any rank. A SIGKILL comes from outside and never counts."""
        if "SIGKILL" in (self.type, other.type) or "peer" in (self.kind, other.kind):
            return False
        return (self.kind, self.type, self.message, self.where) == (other.kind, other.type, other.message, other.where)

    def lines(self, *, full: bool) -> list[str]:
        """The report for the user: the cause with rank and file:line, then the traceback.

        `full`: all frames, else the last three. A UserError is three lines without a traceback.
        """
        if self.kind == "user_error":
            return [f"asked: {self.asked}", f"found: {self.found}", f"   do: {self.do}"]
        at = f" (at {self.where.removeprefix(os.getcwd() + os.sep)})" if self.where else ""
        if self.kind == "signal":
            return [f"rank {self.rank} {self.message}{at}"]
        if self.kind == "exit":
            return [f"rank {self.rank} {self.message}"]
        if self.kind == "peer":
            return [f"rank {self.rank} lost the other ranks{at}: {_first_line(self.message)}"]
        cause = self.message if self.kind == "gave_up" else f"{self.type}: {self.message}"
        starts = [i for i, line in enumerate(self.frames) if FRAME.match(line)]
        return [
            f"rank {self.rank} failed{at}: {cause}",
            *self.frames[starts[-SHOWN_FRAMES:][0] if starts and not full else 0 :],
        ]


def report_exception(error: Exception, rank: int, path: Path) -> int:
    """Print the traceback of the exception that ends this rank and write it to the error file; the exit code.

    The launcher reads the error file `path`, and the printed traceback goes to the log.
    """
    traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    last = next((f for f in reversed(frames) if _is_own_code(f.filename)), frames[-1] if frames else None)
    report = {
        "time_s": time.time(),
        "rank": rank,
        "type": type(error).__name__,
        "message": str(error),
        "where": f"{last.filename}:{last.lineno}" if last is not None else "",
        "traceback": "".join(traceback.format_exception(error)),
        "kind": kind_of(error),
    }
    if isinstance(error, UserError):
        report |= {"asked": error.asked, "found": error.found, "do": error.do}
    try:
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(report), encoding="utf-8")
        temporary.replace(path)
    except OSError as problem:  # the launcher reads the printed traceback instead
        print(f"could not write {path}: {problem}", file=sys.stderr)
    return EXIT_CODES.get(str(report["kind"]), 1)


def show_exception(error: Exception, rank: int) -> int:
    """Print the exception that ends this rank, which torchrun or Slurm started; the exit code.

    A lost connection is one line, because another rank knows the cause. Other failures have their traceback.
    """
    kind = kind_of(error)
    if kind == "user":
        traceback.print_exception(error)
    elif kind == "peer":
        lost = Failure(rank, kind, type(error).__name__, str(error))
        lines = [f"{socket.gethostname()}: {line}" for line in lost.lines(full=False)]
        notes: list[str] = getattr(error, "__notes__", [])
        print(*lines, "another rank ended first: its own output says why", *notes, sep="\n", file=sys.stderr)
    else:
        print(f"gave up: {error}" if kind == "gave_up" else error, file=sys.stderr)
    return EXIT_CODES.get(kind, 1)


def _is_own_code(filename: str) -> bool:
    """Whether a file belongs to the user or to this package, not to a library."""
    return not filename.startswith("<") and ("site-packages" not in filename or filename.startswith(PACKAGE))


def kind_of(error: BaseException) -> Kind:
    """Classify an exception. A lost connection is `peer`, also where it caused the exception or came before it."""
    if isinstance(error, UserError):
        return "user_error"
    if isinstance(error, GaveUp):
        return "gave_up"
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (RuntimeError, OSError)) and PEER_LOST.search(str(seen)):
            return "peer"
        seen = seen.__cause__ or seen.__context__
    return "user"


def explain_exit(rank: int, code: int, error_file: Path, tail: str) -> Failure:
    """Why a rank failed, from its exit code (negative: a signal, as in subprocess) and what it left.

    `tail`: the end of its error output. A signal takes precedence over the error file. The exception is SIGABRT, by
    which a communication library ends the ranks that lost their connection.
    """
    written = _read(error_file, rank)
    if written is not None and code in (1, 2, 3, -signal.SIGABRT):
        return written
    printed = parse_traceback(rank, tail)
    if code < 0:
        if code == -signal.SIGABRT and printed is not None and printed.kind == "peer":
            return printed
        return Failure(
            rank, "signal", signal_name(-code), describe_signal(-code), _faulted_at(tail), time_s=time.time()
        )
    if printed is not None:
        return printed
    return Failure(rank, "exit", "exit", f"ended with exit code {code} and without a message", time_s=time.time())


def parse_traceback(rank: int, text: str) -> Failure | None:
    """The last Python traceback in the output of a rank that writes no error file (a user's own script)."""
    lines = [re.sub(r"^\[rank\d+\]:\s?", "", line) for line in text.splitlines()]
    starts = [i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    if not starts:
        return None
    block = lines[starts[-1] + 1 :]
    end = next((i for i, line in enumerate(block) if line and not line[0].isspace()), len(block))
    if end == len(block):
        return None
    name, _, message = block[end].partition(":")
    peer = any(PEER_LOST.search(line) for line in lines[starts[0] :])
    return _with_frames(
        Failure(rank, "peer" if peer else "user", name.strip(), message.strip(), time_s=time.time()), block[:end]
    )


def signal_name(signum: int) -> str:
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"


def describe_signal(signum: int) -> str:
    """A sentence for a rank that a signal ended."""
    hint = " (by hand, or because the system ran out of memory)" if signum == signal.SIGKILL else ""
    return f"was ended by {signal_name(signum)}, {signal.strsignal(signum) or 'unknown'}{hint}"


def _read(path: Path, rank: int) -> Failure | None:
    try:
        report = cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
        known = {
            name: report[name]
            for name in ("kind", "type", "message", "where", "time_s", "asked", "found", "do")
            if name in report
        }
        return _with_frames(Failure(rank=rank, **known), str(report.get("traceback", "")).splitlines())
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _with_frames(failure: Failure, lines: list[str]) -> Failure:
    """Add the frames of a traceback and, where `where` is empty, the file and line of the last frame."""
    frames = tuple(line.rstrip() for line in lines if line.startswith("  "))
    places = [match for match in map(FRAME.match, frames) if match is not None]
    where = failure.where or (f"{places[-1][1]}:{places[-1][2]}" if places else "")
    return replace(failure, where=where, frames=frames)


def _faulted_at(tail: str) -> str:
    """file:line of the Python code that ran when a rank crashed, from faulthandler's dump."""
    dump = tail.rpartition("Current thread")[2] if "Fatal Python error" in tail else ""
    frame = re.search(r'File "(.+)", line (\d+)', dump)
    return f"{frame[1]}:{frame[2]}" if frame else ""


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
