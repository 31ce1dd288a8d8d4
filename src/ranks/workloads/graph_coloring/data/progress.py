"""Progress of a build on standard error: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

LINE_INTERVAL_S = 10.0
"""Seconds between two lines where standard error is not a terminal."""


def say(text: str) -> None:
    """Prints one line to standard error."""
    print(f"ranks: {text}", file=sys.stderr, flush=True)


class Progress:
    """Shows how many graphs of `total` are done. Use it as a context manager."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self._last_line_s = time.monotonic()
        self._bar = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            columns = TextColumn(title, markup=False), BarColumn(bar_width=24), MofNCompleteColumn()
            self._bar = RichProgress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
            self._task = self._bar.add_task("", total=total)

    def advance(self, graphs: int) -> None:
        """Counts `graphs` more as done; a negative number takes some back."""
        self.done += graphs
        if self._bar:
            self._bar.advance(self._task, graphs)
        elif time.monotonic() - self._last_line_s >= LINE_INTERVAL_S:
            self._last_line_s = time.monotonic()
            say(f"{self.title}: {self.done:,} of {self.total:,}")

    def __enter__(self) -> Progress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()
