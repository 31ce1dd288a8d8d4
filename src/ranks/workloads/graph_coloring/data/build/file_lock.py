"""A lock on a file, so that one process at a time builds a data set."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ranks.workloads.graph_coloring.data.progress import say


@contextmanager
def file_lock(lock: Path, what: str) -> Generator[None]:
    """Holds an exclusive lock on a file; waits, and says so, while another process holds it.

    The operating system releases the lock even if the process is killed.
    """
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is building {what}: waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
