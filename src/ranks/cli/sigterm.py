"""What SIGTERM does to a command: it exits at once, or raises SystemExit where something must be
cleaned up.

A training run and a launcher set their own handlers.
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
    """SIGTERM ends the process with exit code 143, without an exception that an import or a
    finalizer could catch.

    A rank keeps the default action of the signal. It also ends a rank that waits for other ranks in
    C++, where no Python handler runs."""
    if "RANK" not in os.environ:
        signal.signal(signal.SIGTERM, _end)


def _end(signum: int, frame: FrameType | None) -> None:
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(EXIT_CODE)


@contextlib.contextmanager
def raises_system_exit() -> Generator[None]:
    """Inside, SIGTERM raises SystemExit(143): a command ends the programs that it started, and
    closes its files."""

    def unwind(signum: int, frame: FrameType | None) -> None:
        sys.exit(EXIT_CODE)

    before = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
