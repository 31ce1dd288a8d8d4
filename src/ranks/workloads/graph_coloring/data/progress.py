"""What a build shows: a bar on a terminal, else a line now and then; and the lock that lets one process build."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

LINE_S = 10.0
"""Seconds between two lines in a log."""


def say(text: str) -> None:
    """One line on the error output."""
    print(f"ranks: {text}", file=sys.stderr, flush=True)


class Progress:
    """Graphs done of all that are to do."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self._line_s = time.monotonic()
        self._bar = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bars

            columns = TextColumn(title, markup=False), BarColumn(bar_width=24), MofNCompleteColumn()
            self._bar = Bars(*columns, TimeRemainingColumn(), console=Console(stderr=True))
            self._task = self._bar.add_task("", total=total)

    def advance(self, graphs: int) -> None:
        """So many more are done."""
        self.done += graphs
        if self._bar:
            self._bar.advance(self._task, graphs)
        elif time.monotonic() - self._line_s >= LINE_S:
            self._line_s = time.monotonic()
            say(f"{self.title}: {self.done:,} of {self.total:,}")

    def __enter__(self) -> Progress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()


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
