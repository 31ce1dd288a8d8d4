"""The state of another process, as the system tells it."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

STOPPED = ("T", "t")
IS_STOPPED = f"is stopped ({signal.Signals.SIGSTOP.name} or a debugger)"
"""A predicate for users."""


def process_state(pid: int) -> str:
    """The state of a process as one letter (R, S, D, T, Z), empty where the system does not tell (not Linux)."""
    if sys.platform != "linux":
        return ""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal or a debugger."""
    return process_state(pid) in STOPPED
