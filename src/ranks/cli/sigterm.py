"""What SIGTERM does to a command: it ends at once where nothing is to be undone, and unwinds where something is.

A run takes over the signals itself (engine/stop.py), a launcher too (launch/signals.py).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Generator
from types import FrameType

EXIT_CODE = 128 + signal.SIGTERM


def exits_at_once() -> None:
    """The process ends with 143. No exception: an import, a parser or a finalizer could swallow it.

    A rank is left to the signal's own action, which ends it also while it waits for its peers in C++, where no handler
    of Python's would run, and one of them may be gone already.
    """
    if "RANK" not in os.environ:
        signal.signal(signal.SIGTERM, _end)


def _end(signum: int, frame: FrameType | None) -> None:
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(EXIT_CODE)


@contextlib.contextmanager
def raises_system_exit() -> Generator[None]:
    """Inside, SIGTERM raises SystemExit(143), so that programs that were started are ended and files put away."""

    def unwind(signum: int, frame: FrameType | None) -> None:
        sys.exit(EXIT_CODE)

    before = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
