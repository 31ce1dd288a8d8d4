"""Why a rank ended: written by the rank itself, or read from its exit code and the end of its log."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from ranks.errors import GaveUp, UserError

Kind = Literal["signal", "user", "user_error", "gave_up", "peer", "exit"]
EXIT_CODES: dict[str, int] = {"user_error": UserError.exit_code, "gave_up": GaveUp.exit_code}
"""All other kinds: 1."""

PEER_LOST = re.compile(
    r"Connection (closed|reset) by peer|connection closed by remote|Broken pipe|Connection refused"
    r"|gloo[/\\]transport|ncclRemoteError|remote process exited|NCCL communicator was aborted"
    r"|[Ff]ailed to recv, got 0 bytes|Socket Timeout|client socket has (failed|timed out)"
    r"|Timed out waiting .* (recv|send|connect)|Application timeout caused pair closure",
)
"""What a rank says when another one went away (gloo, NCCL and TCPStore of torch 2.11 to 2.13)."""

PACKAGE = str(Path(__file__).parents[1])
FRAME = re.compile(r'  File "(.*)", line (\d+)')
SHOWN_FRAMES = 3


@dataclass(frozen=True)
class Failure:
    """The end of one rank. `where` is file:line or empty; `frames` the lines of the traceback, outermost call first."""

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

    def lines(self, *, full: bool) -> list[str]:
        """What a person reads: the cause first, with rank and file:line, then the traceback or its last three frames.

        For bad input three lines only.
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
        said = self.message if self.kind == "gave_up" else f"{self.type}: {self.message}"
        starts = [i for i, line in enumerate(self.frames) if FRAME.match(line)]
        return [
            f"rank {self.rank} failed{at}: {said}",
            *self.frames[starts[-SHOWN_FRAMES:][0] if starts and not full else 0 :],
        ]


def report_exception(error: Exception, rank: int, path: Path) -> int:
    """In a rank that ends by `error`: print the traceback for the log, write it for the launcher; exit code."""
    traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    last = next((f for f in reversed(frames) if _of_a_person(f.filename)), frames[-1] if frames else None)
    facts = {
        "time_s": time.time(),
        "rank": rank,
        "type": type(error).__name__,
        "message": str(error),
        "where": f"{last.filename}:{last.lineno}" if last is not None else "",
        "traceback": "".join(traceback.format_exception(error)),
        "kind": kind_of(error),
    }
    if isinstance(error, UserError):
        facts |= {"asked": error.asked, "found": error.found, "do": error.do}
    try:
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(facts), encoding="utf-8")
        temporary.replace(path)
    except OSError as problem:  # the launcher then reads the log
        print(f"could not write {path}: {problem}", file=sys.stderr)
    return EXIT_CODES.get(str(facts["kind"]), 1)


def _of_a_person(filename: str) -> bool:
    """Whether a file is the user's or ours, not a library's."""
    return not filename.startswith("<") and ("site-packages" not in filename or filename.startswith(PACKAGE))


def kind_of(error: BaseException) -> Kind:
    """A lost connection is `peer`, also as the reason for another exception; it never hides the cause."""
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


def of_ended(rank: int, code: int, error_file: Path, tail: str) -> Failure:
    """Why a rank that ended with `code` (negative: a signal, as in subprocess) failed.

    `tail`: the end of its error output. A death by signal counts for more than what was written before it, but an
    abort (SIGABRT), which is how a communication library ends the survivors, does not.
    """
    written = _read(error_file, rank)
    if written is not None and code in (1, 2, 3, -signal.SIGABRT):
        return written
    told = parse_traceback(rank, tail)
    if code < 0:
        if code == -signal.SIGABRT and told is not None and told.kind == "peer":
            return told
        return Failure(rank, "signal", signal_name(-code), died_of(-code), _faulted_at(tail), time_s=time.time())
    if told is not None:
        return told
    return Failure(rank, "exit", "exit", f"ended with exit code {code} and without a message", time_s=time.time())


def parse_traceback(rank: int, text: str) -> Failure | None:
    """The last Python traceback of a rank that writes no error file (a script of a person's own)."""
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


def died_of(signum: int) -> str:
    """A death by signal in words."""
    hint = " (by hand, or the system ran out of memory)" if signum == signal.SIGKILL else ""
    return f"was ended by {signal_name(signum)}, {signal.strsignal(signum) or 'unknown'}{hint}"


def _read(path: Path, rank: int) -> Failure | None:
    try:
        facts = cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
        known = {
            name: facts[name]
            for name in ("kind", "type", "message", "where", "time_s", "asked", "found", "do")
            if name in facts
        }
        return _with_frames(Failure(rank=rank, **known), str(facts.get("traceback", "")).splitlines())
    except (OSError, ValueError, TypeError):
        return None


def _with_frames(failure: Failure, lines: list[str]) -> Failure:
    """Add the frames of a traceback, and the place of the last one where it is not known."""
    frames = tuple(line.rstrip() for line in lines if line.startswith("  "))
    places = [match for match in map(FRAME.match, frames) if match is not None]
    where = failure.where or (f"{places[-1][1]}:{places[-1][2]}" if places else "")
    return replace(failure, where=where, frames=frames)


def _faulted_at(tail: str) -> str:
    """The Python line that ran when a rank crashed, from faulthandler's dump."""
    dump = tail.rpartition("Current thread")[2] if "Fatal Python error" in tail else ""
    frame = re.search(r'File "(.+)", line (\d+)', dump)
    return f"{frame[1]}:{frame[2]}" if frame else ""


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
