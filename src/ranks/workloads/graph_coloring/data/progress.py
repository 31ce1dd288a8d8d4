"""Lines that a build prints, and the lock that lets one process build."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def say(text: str) -> None:
    """One line on the error output."""
    print(f"ranks: {text}", file=sys.stderr, flush=True)


@contextmanager
def alone(lock: Path, what: str) -> Generator[None]:
    """Hold a lock on a file; wait where another process has it. It is given back even by a process that is killed."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process makes {what}: waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
