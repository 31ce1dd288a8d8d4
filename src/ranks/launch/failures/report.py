"""What a rank writes when an exception ends it, for the launcher. Runs in the rank."""

from __future__ import annotations

import json
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

from ranks.errors import UserError
from ranks.launch.failures.classify import kind_of
from ranks.launch.failures.failure import EXIT_CODES, Failure

PACKAGE = str(Path(__file__).parents[2])


def report_exception(error: Exception, rank: int, path: Path) -> int:
    """Print the traceback of the exception that ends this rank and write it to the error file; the exit code.

    The launcher reads the error file `path`, and the printed traceback goes to the log.
    """
    traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    last = next((f for f in reversed(frames) if is_own_code(f.filename)), frames[-1] if frames else None)
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
    _write(report, path)  # where that fails, the launcher reads the printed traceback instead
    return EXIT_CODES.get(str(report["kind"]), 1)


def report_exit(end: SystemExit, path: Path) -> None:
    """Write the exit code and message of a `sys.exit` to the error file. Python prints the message."""
    code, message = exit_code_of(end)
    if code:
        said = f"ended with exit code {code}" + (f": {message}" if message else " and without a message")
        report = {"time_s": time.time(), "kind": "exit", "type": "exit", "message": said, "exit_code": code}
        _write(report, path)


def exit_code_of(end: SystemExit) -> tuple[int, str]:
    """The exit code that Python gives a process for this SystemExit, and the message that it prints."""
    value: object = end.code
    if value is None:
        return 0, ""
    return (value & 0xFF, "") if isinstance(value, int) else (1, str(value))


def _write(report: Mapping[str, object], path: Path) -> None:
    try:
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(report), encoding="utf-8")
        temporary.replace(path)
    except OSError as problem:
        print(f"could not write {path}: {problem}", file=sys.stderr)


def show_exception(error: Exception, rank: int) -> int:
    """Print the exception that ends this rank, which torchrun or Slurm started; the exit code.

    A lost connection is one line, because another rank knows the cause. Other failures have their traceback.
    """
    kind = kind_of(error)
    if kind == "peer":
        lost = Failure(rank, kind, type(error).__name__, str(error))
        lines = [f"{socket.gethostname()}: {line}" for line in lost.lines(full=False)]
        notes: list[str] = getattr(error, "__notes__", [])
        print(*lines, "another rank ended first: its own output says why", *notes, sep="\n", file=sys.stderr)
    elif kind in EXIT_CODES:
        print(f"gave up: {error}" if kind == "gave_up" else error, file=sys.stderr)
    else:
        traceback.print_exception(error)
    return EXIT_CODES.get(kind, 1)


def is_own_code(filename: str) -> bool:
    """Whether a file belongs to the user or to this package, not to Python or a library."""
    library = "site-packages" in filename or filename.startswith((sys.base_prefix + "/lib", "<"))
    return filename.startswith(PACKAGE) or not library
