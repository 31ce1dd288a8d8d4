"""The orphan reaper: no rank outlives its launcher, however the launcher ends."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
REMOVED_S = 30.0
"""How long the removal of folders may take at the end. On a file system that does not answer, nobody waits longer."""


class OrphanReaper:
    """A helper process that kills the ranks when the launcher itself is killed (reap_orphans.py)."""

    def __enter__(self) -> OrphanReaper:
        path = Path(__file__).with_name("reap_orphans.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def add_group(self, pgid: int) -> None:
        """A process group to kill if the launcher dies."""
        self._send(f"+{pgid}")

    def remove_group(self, pgid: int) -> None:
        """This process group has ended."""
        self._send(f"-{pgid}")

    def add_folder(self, folder: Path) -> None:
        """A folder to remove when the launcher has ended."""
        self._send(f"d {folder}")

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def __exit__(self, *error: object) -> None:
        """Let it remove its folders, and wait for that."""
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.communicate(timeout=REMOVED_S)


@contextlib.contextmanager
def subreaper() -> Generator[None]:
    """Make orphans of killed ranks children of this process, so that it can wait for them (Linux). Afterwards it is as
    before: a program that trains in its own process keeps no duty for the orphans of others."""
    if sys.platform != "linux":
        yield
        return
    libc, before = ctypes.CDLL(None), ctypes.c_int()
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before))
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, before.value)
