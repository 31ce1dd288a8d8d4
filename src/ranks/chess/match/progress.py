"""The output of a running match: lines on stdout, and a progress bar below them on a terminal."""

from __future__ import annotations

import sys
from types import TracebackType


class Progress:
    """Prints lines to stdout and flushes each.

    Shows a progress bar only if stdout is a terminal."""

    def __init__(self, total: int, unit: str) -> None:
        self._bar = None
        if sys.stdout.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bars

            self._bar = Bars(BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
            self._task = self._bar.add_task("", total=total)

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        if self._bar:
            self._bar.console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)
        else:
            sys.stdout.write(f"{text}\n")  # in one write: several threads print
            sys.stdout.flush()

    def advance(self) -> None:
        """One unit is done."""
        if self._bar:
            self._bar.advance(self._task)

    def __enter__(self) -> Progress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()
