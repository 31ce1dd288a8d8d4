"""A lock on a file, so that one process at a time builds a data set."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ranks.data.prepared.say import say
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv
from ranks.engine.files.lock import taken
from ranks.engine.liveness.heartbeat import heartbeat

POLL_S = 0.2
LATER_S = 1.0
"""The other ranks of a host ask for the lock so much later than its first one, whose progress bar a launcher shows."""


@contextmanager
def file_lock(lock: Path, what: str) -> Generator[None]:
    """Holds an exclusive lock on a file; waits, and says so, while another process holds it.

    The operating system releases the lock even if the process is killed. A rank that waits does not
    count as hanging.
    """
    if ProcessEnv.detect().local_rank > 0:
        time.sleep(LATER_S)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not taken(descriptor):
            say(f"another process is building {what}: waiting for it")
            while not taken(descriptor):
                heartbeat.beat()
                time.sleep(POLL_S)
        yield
    finally:
        os.close(descriptor)
