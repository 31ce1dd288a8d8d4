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
AGAIN_S = 0.1


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
    closes its files.

    Python ignores an exception in a finalizer or in a callback of fork, where the signal may arrive
    too. The exception is then raised again `AGAIN_S` later, by SIGALRM."""
    show_unraisable = sys.unraisablehook

    def unwind(signum: int, frame: FrameType | None) -> None:
        sys.exit(EXIT_CODE)

    def ignored(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, SystemExit):
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
        else:
            show_unraisable(unraisable)

    before = {signum: signal.signal(signum, unwind) for signum in (signal.SIGTERM, signal.SIGALRM)}
    sys.unraisablehook = ignored
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        sys.unraisablehook = show_unraisable
        for signum, handler in before.items():
            signal.signal(signum, handler)
