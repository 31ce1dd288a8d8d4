"""The console view of a run: plan, progress, events and summary, drawn by a thread from the files of the run.

On a terminal a progress bar stays at the bottom. In a log there is a progress line at most every ten seconds. Both say
how far a long iteration is, and get a line for each evaluation and event. It runs in the launcher, or in the process of
rank 0. If it fails, the run continues.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TextIO

from ranks.engine.files.jsonl import number
from ranks.engine.runs.folder import SESSIONS_FILE, TELEMETRY_FILE
from ranks.engine.runs.sessions import NOTICES
from ranks.progress import LOG_S, ProgressBar, TimeLeft
from ranks.watch.iteration_progress import IterationProgress
from ranks.watch.lines import (
    clean,
    event_line,
    iterations_done,
    plan_lines,
    progress_line,
    progress_parts,
    summary_lines,
    validation_line,
)
from ranks.watch.run_status import RunStatus
from ranks.watch.self_play_line import self_play_line
from ranks.watch.tail import JsonlTail
from ranks.watch.telemetry_rows import use_parts

POLL_S = 0.25
BEFORE_ROWS = ("opened", "resumed", "plan")
"""Events that are shown before the rows that arrive with them. All others are shown after."""


class ConsoleView:
    """`with ConsoleView(run_dir) as view:` shows what is new in the files of a run until the block ends."""

    def __init__(
        self,
        run_dir: Path,
        *,
        stream: TextIO | None = None,
        terminal: bool | None = None,
        width: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        status: RunStatus | None = None,
    ) -> None:
        """`terminal`, `width`: as the stream says by default. The rows that the files hold now are not shown. With
        `status`, for a run that trains already in another terminal, its plan, its newest evaluation, events and
        progress are, and its curves, goodput and cost."""
        self.run_dir = run_dir
        self._stream = stream if stream is not None else sys.stdout
        self._terminal = self._stream.isatty() if terminal is None else terminal
        self._clock, self._width = clock, width
        self._events, self._metrics = JsonlTail(run_dir / "events.jsonl"), JsonlTail(run_dir / "metrics.jsonl")
        self._telemetry, self._use = JsonlTail(run_dir / TELEMETRY_FILE), list[str]()
        self._progress = IterationProgress(run_dir, clock)
        self._status = status
        self._sessions = JsonlTail(run_dir / SESSIONS_FILE) if status is not None else None
        """Of a launcher in another terminal, which says there which ranks are slow."""
        self._shown: set[str] = set()
        """Events seen before, so that after a truncation only new ones are shown."""
        self._plan: list[str] = []
        self._iterations: int | None = None
        self._first = 0
        """Finished iterations when the session began."""
        self._last: dict[str, Any] = {}
        self._time_left = TimeLeft()
        self._line_s = -LOG_S
        self._finished: dict[str, Any] | None = None
        self._bar: ProgressBar | None = None
        self._unfinished: set[TextIO] = set()
        """Where the output of a rank has not ended its last line."""
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="ranks-console", daemon=True)
        self._failed = False
        self._try(self._attach if status is not None else self._skip_old)

    def __enter__(self) -> ConsoleView:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._thread.join(timeout=5.0)
        self._try(self.refresh)
        self._try(self._close)

    def say(self, text: str) -> None:
        """Print lines to standard error, above the progress bar if both are on one terminal."""
        self._print("\n".join(clean(line) for line in text.splitlines()), sys.stderr)

    def show(self, rank: int, channel: Literal["out", "err"], text: str) -> None:
        """Print the output of a rank, as it is where no bar is drawn on the same terminal.

        Above a bar, an unfinished line gets a line end. Of a line with carriage returns only the last part is printed.
        """
        stream = sys.stderr if channel == "err" else self._stream
        with self._lock:
            if self._above_bar(stream):
                for line in text.removesuffix("\n").split("\n"):
                    self._print(line.rpartition("\r")[2], stream)
                return
            with contextlib.suppress(OSError, ValueError):  # the reader of the output has closed it
                stream.write(text)
                stream.flush()
            self._unfinished.discard(stream)
            if not text.endswith("\n"):
                self._unfinished.add(stream)

    def _print(self, text: str, stream: TextIO) -> None:
        with self._lock:
            if self._above_bar(stream):
                self._try(lambda: self._line(text))
            else:
                with contextlib.suppress(OSError, ValueError):
                    self._end_line(stream)
                    print(text, file=stream, flush=True)

    def _above_bar(self, stream: TextIO) -> bool:
        return self._bar is not None and not self._failed and stream.isatty()

    def _end_line(self, stream: TextIO) -> None:
        """End the unfinished line of a rank, so that a line of the view starts at the left."""
        for other in [s for s in self._unfinished if s is stream or (s.isatty() and stream.isatty())]:
            self._unfinished.discard(other)
            print(file=other, flush=True)

    def refresh(self) -> None:
        """Read the files and show what is new."""
        with self._lock:
            events = self._events.read()
            new = [event for event in events.rows if not (events.truncated and repr(event) in self._shown)]
            for event in new:
                if event.get("event") in BEFORE_ROWS:
                    self._on_event(event)
            metrics = self._metrics.read()
            if metrics.truncated:
                self._time_left.clear()
                self._skip_rows(metrics.rows)
            else:
                for row in metrics.rows:
                    self._on_row(row)
            for event in new:
                if event.get("event") not in BEFORE_ROWS:
                    self._on_event(event)
            self._read_launcher()
            self._draw()

    def _read_launcher(self) -> None:
        """What the launcher wrote: the use of each rank, and notices of slow ranks."""
        for row in self._telemetry.read().rows[-1:]:
            self._use = use_parts(row)
        for record in self._sessions.read().rows if self._sessions is not None else []:
            if record.get("event") in NOTICES:
                self._line(clean(str(record.get("text", ""))))

    def _follow(self) -> None:
        while not self._closing.wait(POLL_S) and not self._failed:
            self._try(self.refresh)

    def _try(self, action: Callable[[], None]) -> None:
        """Do something; the first failure is printed and ends the view, not the run."""
        if self._failed:
            return
        try:
            action()
        except Exception as error:
            self._failed = True
            print(f"the console view failed ({type(error).__name__}: {error}); the run continues", file=sys.stderr)

    def _skip_old(self) -> None:
        """Read the rows of earlier sessions without showing them."""
        while rows := self._events.read().rows:
            self._shown.update(map(repr, rows))
        self._skip_rows(self._metrics.read().rows)
        while self._telemetry.read().rows:
            pass

    def _attach(self) -> None:
        """Read the rows of a running run, and show its plan and what is newest."""
        plan: dict[str, Any] | None = None
        while rows := self._events.read().rows:
            self._shown.update(map(repr, rows))
            plan = next((event for event in reversed(rows) if event.get("event") == "plan"), plan)
        if plan is not None:
            self._on_plan(plan)
        validation: str | None = None
        while rows := self._metrics.read().rows:
            for row in rows:
                validation = validation_line(row) or validation
                self._keep(row)
        if validation is not None:
            self._line(validation)
        while self._sessions is not None and self._sessions.read().rows:
            pass
        if self._status is not None:
            self._status.read_all()
            self._lines(self._status.events())

    def _skip_rows(self, rows: list[dict[str, Any]]) -> None:
        """Skip these rows of metrics.jsonl and all that follow them now."""
        while rows:
            rows = self._metrics.read().rows

    def _on_event(self, event: dict[str, Any]) -> None:
        self._shown.add(repr(event))
        match event.get("event"):
            case "plan":
                self._on_plan(event)
            case "finished":
                self._finished = event
            case _:
                line = event_line(event)
                if line is not None:
                    self._line(line)

    def _on_plan(self, event: dict[str, Any]) -> None:
        self._iterations, self._first = event.get("iterations"), int(number(event, "start_iteration") or 0)
        plan = plan_lines({k: v for k, v in event.items() if k not in ("start_iteration", "expected_s")})
        if plan != self._plan:  # a restart has the same plan
            self._plan = plan
            self._lines(plan_lines(event))

    def _keep(self, row: dict[str, Any]) -> None:
        """The newest row, and what it says about the speed."""
        self._last = row
        done, time_s = iterations_done(row), row.get("time_s")
        if done is not None and isinstance(time_s, int | float):
            self._time_left.add(done, float(time_s))

    def _on_row(self, row: dict[str, Any]) -> None:
        self._keep(row)
        for line in filter(None, (self_play_line(row), validation_line(row))):
            self._line(line)

    def _draw(self) -> None:
        """Show the newest row and how far the present iteration is: in the progress bar, or as a line where the last
        line is old enough."""
        inside = self._progress.read()
        if not self._last and not inside:
            return
        remaining_s = self._time_left.seconds(self._iterations)
        if self._status is not None:
            self._status.read(at_once=self._closing.is_set())
        if self._terminal:
            if self._bar is None:
                self._end_line(self._stream)
                self._bar = ProgressBar(stream=self._stream, terminal=True, width=self._width).start()
            parts = [*filter(None, [inside]), *progress_parts(self._last, self._iterations, remaining_s)]
            done = iterations_done(self._last) if self._last else self._first
            below = self._below()
            self._bar.update(done or 0, parts if below else [*parts, *self._use], self._iterations, below)
        elif self._clock() - self._line_s >= LOG_S:
            self._line_s = self._clock()
            parts = [progress_line(self._last, self._iterations, remaining_s)] if self._last else [inside]
            facts = self._status.parts() if self._status is not None else []
            self._line(", ".join(filter(None, [*parts, *self._use, *facts])))
            self._lines(self._status.log_curves() if self._status is not None else [])
            self._last = {}

    def _below(self) -> list[str]:
        """The lines under the bar of `ranks watch`; empty in the view of the launcher."""
        if self._status is None:
            return []
        return [*self._status.curves(), *([", ".join(self._use)] if self._use else []), self._status.summary()]

    def _close(self) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.close()
                self._bar = None
            elif self._last:
                self._line(progress_line(self._last, self._iterations, None))
            if self._status is not None and not self._terminal:
                self._lines(self._status.log_curves(end=True))
            if self._finished is not None:
                self._lines(summary_lines(self._finished, self.run_dir))

    def _lines(self, lines: list[str]) -> None:
        for line in lines:
            self._line(line)

    def _line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.line(text)
        else:
            self._end_line(self._stream)
            print(text, file=self._stream, flush=True)
