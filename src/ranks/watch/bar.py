"""The progress bar of a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.text import Text

from ranks.watch.lines import progress_line


class Bar:
    """One line at the bottom of the terminal, and lines printed above it."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._progress = Progress(
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("", total=None)
        self._progress.start()

    def update(
        self, row: Mapping[str, Any], iterations: int | None, remaining_s: float | None, validation: str
    ) -> None:
        """Draw it for the newest row of metrics.jsonl and the last evaluation."""
        text = progress_line(row, iterations, remaining_s)
        description = f"{text} | {validation}" if validation else text
        done = int(row.get("iteration", 0))
        self._progress.update(self._task, completed=done, total=iterations, description=description)
        self._progress.refresh()

    def line(self, text: str) -> None:
        """One line above the bar."""
        self._console.print(Text.from_ansi(text), soft_wrap=True)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._progress.refresh()
        self._progress.stop()
