"""Why a rank ended: from the error file that it wrote, or from its exit code and the end of its output."""

from __future__ import annotations

import json
import re
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ranks.engine.distributed.device_errors import device_error
from ranks.engine.liveness.stacks import frames_of
from ranks.errors import GaveUp, UserError
from ranks.launch.failures.classify import MISMATCH, kind_of_text
from ranks.launch.failures.failure import FRAME, Failure, Kind
from ranks.launch.failures.report import is_own_code

PYTHON_CODES = (1, UserError.exit_code, GaveUp.exit_code)
"""Exit codes of a rank that an exception ended. With another code, a traceback in its output is of a handled one."""


def explain_exit(rank: int, code: int, error_file: Path, tail: str, *, memory_ran_out: str = "") -> Failure:
    """Why a rank failed, from its exit code (negative: a signal, as in subprocess) and what it left.

    `tail`: the end of its error output. `memory_ran_out`: what the kernel did, where it ended processes for want of
    memory. A signal takes precedence over the error file. The exception is SIGABRT, by which a communication library
    ends a rank after an error.
    """
    written = _read(error_file, rank)
    if written is not None and code in (*PYTHON_CODES, -signal.SIGABRT, written.exit_code):
        return written
    printed = parse_traceback(rank, tail)
    if code < 0:
        aborted = _aborted(rank, tail, printed) if code == -signal.SIGABRT else None
        hint = memory_ran_out if code == -signal.SIGKILL else ""
        return aborted or Failure(
            rank, "signal", signal_name(-code), describe_signal(-code, hint), _faulted_at(tail), time_s=time.time()
        )
    if printed is not None and code in PYTHON_CODES:
        return printed
    return Failure(rank, "exit", "exit", f"ended with exit code {code} and without a message", time_s=time.time())


def _aborted(rank: int, tail: str, printed: Failure | None) -> Failure | None:
    """The cause of a SIGABRT in the error output; None where it says nothing that is known."""
    if printed is not None and printed.kind == "peer":
        return printed
    if MISMATCH.search(tail):
        message = (
            "the ranks have entered different collectives: one rank has a condition of its own before a collective"
        )
        return Failure(rank, "mismatch", "collective mismatch", message, _faulted_at(tail), time_s=time.time())
    found = device_error(tail)
    if found in ("assert", "fault"):
        line = next(line for line in tail.splitlines() if device_error(line) == found)
        return Failure(rank, "device" if found == "fault" else "user", "CUDA error", line.strip(), time_s=time.time())
    return None


def parse_traceback(rank: int, text: str) -> Failure | None:
    """The last Python traceback in the output of a rank that writes no error file (a user's own script).

    The kind is that of any exception of the chain.
    """
    lines = [re.sub(r"^\[rank\d+\]:\s?", "", line) for line in text.splitlines()]
    found: Failure | None = None
    kinds: list[Kind] = []
    for start in (i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")):
        block = lines[start + 1 :]
        end = next((i for i, line in enumerate(block) if line and not line[0].isspace()), len(block))
        if end == len(block):
            return None
        name, _, message = block[end].partition(":")
        kinds.append(kind_of_text(name.strip().rpartition(".")[2], message))
        found = _with_frames(Failure(rank, "user", name.strip(), message.strip(), time_s=time.time()), block[:end])
    return replace(found, kind=next((k for k in kinds if k != "user"), "user")) if found is not None else None


def signal_name(signum: int) -> str:
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"


def describe_signal(signum: int, hint: str = "") -> str:
    """A sentence for a rank that a signal ended. `hint`: what is known of the cause."""
    if signum == signal.SIGKILL:
        hint = hint or "by hand, or because the system ran out of memory"
    hint = f" ({hint})" if hint else ""
    return f"was ended by {signal_name(signum)}, {signal.strsignal(signum) or 'unknown'}{hint}"


def _read(path: Path, rank: int) -> Failure | None:
    try:
        report = cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
        known = {
            name: report[name]
            for name in ("kind", "type", "message", "where", "time_s", "traceback", "asked", "found", "do", "exit_code")
            if name in report
        }
        return _with_frames(Failure(rank=rank, **known), str(known.get("traceback", "")).splitlines())
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
    frames = frames_of(tail.partition("Fatal Python error")[2], current=True)
    return next((f"{file}:{line}" for file, line, _ in frames if is_own_code(file)), _place(frames))


def _place(frames: list[tuple[str, int, str]]) -> str:
    return f"{frames[0][0]}:{frames[0][1]}" if frames else ""
