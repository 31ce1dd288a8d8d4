"""What makes sure that nothing outlives a launcher, however it ends."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


class Sweeper:
    """The process that ends what is left when the launcher itself is killed (sweep.py)."""

    def __enter__(self) -> Sweeper:
        path = Path(__file__).with_name("sweep.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()


def become_subreaper() -> None:
    """What a killed rank leaves behind becomes our child, so that it can be waited for (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
