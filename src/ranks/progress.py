"""The progress bar of every long command: one line at the bottom of a terminal, or now and then a line in a log."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

LOG_S = 10.0
"""Seconds between two progress lines in a log."""
RATE_POINTS = 100
"""The time left is estimated from the speed of so many updates."""
NARROW = ((70, 10), (100, 16), (10**9, 24))
"""(terminal width below which, width of the bar)."""
PERCENTAGE_WIDTH = 6
"""Four characters of percentage and the spaces on both sides."""


class ProgressBar:
    """How much of `total` is done. On a terminal a bar, in a log a line every `log_every_s` seconds.

        with ProgressBar(len(graphs), unit="graphs") as bar:
            for graph in graphs:
                bar.advance()
                bar.line(f"{graph.name} done")

    The bar and the percentage are always visible. The text to their right is cut to the width of the terminal: its last
    parts are left out first. `line` prints above the bar. `log_every_s` None: no progress lines in a log. rich is
    imported only on a terminal.
    """

    def __init__(
        self,
        total: int | None = None,
        *,
        title: str = "",
        unit: str = "",
        stream: TextIO | None = None,
        terminal: bool | None = None,
        width: int | None = None,
        log_every_s: float | None = LOG_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`stream`: standard output by default. `terminal`, `width`: as the stream says by default."""
        self.total, self.title, self.unit = total, title, unit
        self.done = 0
        self._stream = stream if stream is not None else sys.stdout
        self._log_every_s, self._clock = log_every_s, clock
        self._logged_s = clock()
        self._time_left = TimeLeft()
        self._time_left.add(0, clock())
        self._parts: list[str] = []
        self._below: list[str] = []
        self._console: Console | None = None
        self._bar: Progress | None = None
        if self._stream.isatty() if terminal is None else terminal:
            self._console, self._bar = _bar(self._stream, terminal, width, lambda: self._parts, lambda: self._below)
            self._task = self._bar.add_task("", total=total)

    def start(self) -> ProgressBar:
        """Show the bar. `with` does this too."""
        if self._bar is not None:
            self._bar.start()
        return self

    def __enter__(self) -> ProgressBar:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    def advance(self, count: int = 1) -> None:
        """`count` more are done."""
        self.done += count
        now_s = self._clock()
        self._time_left.add(self.done, now_s)
        total = f" of {self.total:,}" if self.total is not None else ""
        left = duration(self._time_left.seconds(self.total))
        done = " ".join(part for part in (self.title, f"{self.done:,}{total}", self.unit) if part)
        self._draw([done, *([f"{left} left"] if left else [])])

    def update(self, done: int, parts: Sequence[str], total: int | None = None, below: Sequence[str] = ()) -> None:
        """`done` are done. `parts`: the text to show, most important part first. `below`: lines under the bar of a
        terminal, cut to its width."""
        self.done, self._below = done, list(below)
        self.total = total if total is not None else self.total
        self._draw(parts)

    def line(self, text: str) -> None:
        """Print one line, above the bar on a terminal. It may hold ANSI colours."""
        if self._bar is not None:
            from rich.text import Text

            self._bar.console.print(Text.from_ansi(text), soft_wrap=True)
        else:
            self._stream.write(f"{text}\n")  # one write call: several threads may print
            self._stream.flush()

    def close(self) -> None:
        """Stop drawing; the last state of the bar stays on the terminal."""
        if self._bar is not None:
            self._bar.refresh()
            self._bar.stop()

    def _draw(self, parts: Sequence[str]) -> None:
        self._parts = list(parts)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, total=self.total)
            self._bar.refresh()
        elif self._log_every_s is not None and self._clock() - self._logged_s >= self._log_every_s:
            self._logged_s = self._clock()
            self.line(", ".join(parts))


class TimeLeft:
    """Estimates the time left from the speed of the last `RATE_POINTS` updates."""

    def __init__(self) -> None:
        self._points: deque[tuple[int, float]] = deque(maxlen=RATE_POINTS)

    def add(self, done: int, time_s: float) -> None:
        """At `time_s`, `done` were done."""
        self._points.append((done, time_s))

    def clear(self) -> None:
        """Forget the speed."""
        self._points.clear()

    def seconds(self, total: int | None) -> float | None:
        """Seconds until `total` are done; None while the speed is unknown."""
        if total is None or len(self._points) < 2:
            return None
        (first, first_s), (last, last_s) = self._points[0], self._points[-1]
        if last <= first or last_s < first_s:
            return None
        return max(0, total - last) * (last_s - first_s) / (last - first)


def duration(seconds: object) -> str:
    """12.3 -> '12 s', 200 -> '3 min 20 s', 7260 -> '2 h 01 min'; empty for anything that is not a finite number."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not abs(seconds) < math.inf:
        return ""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def fit(parts: Sequence[str], width: int) -> str:
    """As many of the parts as fit into `width` characters, the first always, cut if it must be."""
    text = parts[0][: max(0, width)] if parts else ""
    for part in parts[1:]:
        if len(text) + 2 + len(part) > width:
            break
        text += f", {part}"
    return text


def bar_width(width: int) -> int:
    """The width of the bar on a terminal of `width` columns."""
    return next(bar for limit, bar in NARROW if width < limit)


def _bar(
    stream: TextIO,
    terminal: bool | None,
    width: int | None,
    parts: Callable[[], Sequence[str]],
    below: Callable[[], Sequence[str]],
) -> tuple[Console, Progress]:
    """The bar and the lines below it, drawn by rich."""
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn
    from rich.progress_bar import ProgressBar as RichBar
    from rich.table import Column
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False, width=width, force_terminal=terminal)

    class FittedBar(BarColumn):
        def render(self, task: Task) -> RichBar:
            self.bar_width = bar_width(console.width)
            return super().render(task)

    class FittedText(ProgressColumn):
        def render(self, task: Task) -> Text:
            room = console.width - bar_width(console.width) - PERCENTAGE_WIDTH
            return Text(fit(parts(), room), no_wrap=True)

    class BarAndLines(Progress):
        def get_renderables(self) -> Iterable[RenderableType]:
            yield from super().get_renderables()
            yield from (Text(line, no_wrap=True, overflow="ellipsis") for line in below())

    columns = (FittedBar(), TaskProgressColumn(table_column=Column(no_wrap=True)), FittedText())
    bar = BarAndLines(*columns, console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    return console, bar
