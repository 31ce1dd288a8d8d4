"""The console view of a run: plan, progress, what happened, summary; drawn by a thread from the run's own files.

On a terminal a progress bar stays at the bottom; in a log there is at most one line every ten seconds, and one for each
evaluation and event. It works in the process of rank 0 and in the launcher alike, and whatever fails in it, the run
goes on.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from ranks.watch.lines import clean, event_line, plan_lines, progress_line, summary_lines, validation_line
from ranks.watch.tail import Tail

if TYPE_CHECKING:
    from ranks.watch.bar import Bar

POLL_S = 0.25
LINE_S = 10.0
BEGINNINGS = ("opened", "resumed", "plan")
"""Events that come before the rows that arrive with them; all others come after."""
RATE_ROWS = 100
"""The time left follows the speed of so many rows."""


class View:
    """`with View(run_dir) as view:` draws until it is left. What stood in the files before is taken in, not shown."""

    def __init__(
        self,
        run_dir: Path,
        *,
        stream: TextIO | None = None,
        terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run_dir = run_dir
        self._stream = stream if stream is not None else sys.stdout
        self._terminal = self._stream.isatty() if terminal is None else terminal
        self._clock = clock
        self._events, self._metrics = Tail(run_dir / "events.jsonl"), Tail(run_dir / "metrics.jsonl")
        self._shown: set[str] = set()
        """Events seen, so that of a file that was cut back and written again only what is new is shown."""
        self._plan: list[str] = []
        self._iterations: int | None = None
        self._last: dict[str, Any] = {}
        self._times: deque[tuple[int, float]] = deque(maxlen=RATE_ROWS)
        self._validation = ""
        self._line_s = -LINE_S
        self._finished: dict[str, Any] | None = None
        self._bar: Bar | None = None
        self._lock = threading.RLock()
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="ranks-view", daemon=True)
        self._broken = False
        self._guard(self._take_in_old)

    def __enter__(self) -> View:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._leaving.set()
        self._thread.join(timeout=5.0)
        self._guard(self.refresh)
        self._guard(self._close)

    def say(self, text: str) -> None:
        """One line on the error output, above the progress bar where both are on one terminal."""
        self._pass_on(clean(text), sys.stderr)

    def show(self, rank: int, channel: Literal["out", "err"], text: str) -> None:
        """What a rank printed, as it stands; a line that only moves back to its own start is left out."""
        for line in text.split("\n")[:-1] if text.endswith("\n") else text.split("\n"):
            self._pass_on(line.rpartition("\r")[2], sys.stderr if channel == "err" else self._stream)

    def _pass_on(self, text: str, stream: TextIO) -> None:
        with self._lock:
            if self._bar is not None and not self._broken and stream.isatty():
                self._guard(lambda: self._line(text))
            else:
                with contextlib.suppress(OSError, ValueError):  # the reader of our output left
                    print(text, file=stream, flush=True)

    def refresh(self) -> None:
        """Read what is new and draw it once."""
        with self._lock:
            events = self._events.read()
            new = [event for event in events.rows if not (events.cut and repr(event) in self._shown)]
            for event in new:
                if event.get("event") in BEGINNINGS:
                    self._on_event(event)
            metrics = self._metrics.read()
            if metrics.cut:
                self._times.clear()
                self._skip_rows(metrics.rows)
            else:
                for row in metrics.rows:
                    self._on_row(row)
            for event in new:
                if event.get("event") not in BEGINNINGS:
                    self._on_event(event)
            self._draw()

    def _follow(self) -> None:
        while not self._leaving.wait(POLL_S) and not self._broken:
            self._guard(self.refresh)

    def _guard(self, action: Callable[[], None]) -> None:
        """A view that fails says so once and falls silent."""
        if self._broken:
            return
        try:
            action()
        except Exception as error:
            self._broken = True
            print(f"the console view ended ({type(error).__name__}: {error}); the run goes on", file=sys.stderr)

    def _take_in_old(self) -> None:
        while rows := self._events.read().rows:
            self._shown.update(map(repr, rows))
        self._skip_rows(self._metrics.read().rows)

    def _skip_rows(self, rows: list[dict[str, Any]]) -> None:
        """Take these rows of metrics.jsonl and what follows them now as known."""
        while rows:
            rows = self._metrics.read().rows

    def _on_event(self, event: dict[str, Any]) -> None:
        self._shown.add(repr(event))
        match event.get("event"):
            case "plan":
                self._iterations = event.get("iterations")
                plan = plan_lines({k: v for k, v in event.items() if k not in ("start_iteration", "expected_s")})
                if plan != self._plan:  # after a restart it stands above already
                    self._plan = plan
                    self._lines(plan_lines(event))
            case "finished":
                self._finished = event
            case _:
                line = event_line(event)
                if line is not None:
                    self._line(line)

    def _on_row(self, row: dict[str, Any]) -> None:
        self._last = row
        iteration, time_s = row.get("iteration"), row.get("time_s")
        if isinstance(iteration, int) and isinstance(time_s, int | float):
            self._times.append((iteration, float(time_s)))
        validation = validation_line(row)
        if validation is not None:
            self._validation = validation
            if not self._terminal:
                self._line(validation)

    def _draw(self) -> None:
        if not self._last:
            return
        if self._terminal:
            if self._bar is None:
                from ranks.watch.bar import Bar

                self._bar = Bar(self._stream)
            self._bar.update(self._last, self._iterations, self._remaining_s(), self._validation)
        elif self._clock() - self._line_s >= LINE_S:
            self._line_s = self._clock()
            self._line(progress_line(self._last, self._iterations, self._remaining_s()))
            self._last = {}

    def _remaining_s(self) -> float | None:
        if self._iterations is None or len(self._times) < 2:
            return None
        (first, first_s), (last, last_s) = self._times[0], self._times[-1]
        if last <= first or last_s < first_s:
            return None
        return max(0, self._iterations - last) * (last_s - first_s) / (last - first)

    def _close(self) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.close()
                self._bar = None
            elif self._last:
                self._line(progress_line(self._last, self._iterations, None))
            if self._finished is not None:
                self._lines(summary_lines(self._finished, self.run_dir))

    def _lines(self, lines: list[str]) -> None:
        for line in lines:
            self._line(line)

    def _line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.line(text)
        else:
            print(text, file=self._stream, flush=True)
