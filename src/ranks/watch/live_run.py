"""What the files of a run say while it trains. Only what is new in them is read."""

from __future__ import annotations

import os
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranks.engine.files.jsonl import number
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, SESSIONS_FILE, TELEMETRY_FILE, RunFolder
from ranks.errors import UserError, clean
from ranks.progress import TimeLeft
from ranks.watch.iteration_progress import IterationProgress
from ranks.watch.metric_groups import has_curve, is_phase, of_ranks_use
from ranks.watch.run_facts import MOST_EVENTS, RUN_EVENTS, RowSums, RunFacts
from ranks.watch.tail import JsonlTail
from ranks.watch.thinning import Extremes, PhaseSeconds, Thinned

READ_S = 1.0
"""Of one call. A page shows how far the first reading of a long run is."""
MOST_CURVES, MOST_PHASES, MOST_SESSIONS = 400, 20, 10_000
LONGEST_NAME = 200


class LiveRun:
    """The state of one run: sums, curves and events, without its rows.

    `changes` counts the rows that were read. `generation` is another word after each start of the server and each
    resume that has removed rows: curves of another generation are void.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder, self._clock = folder, clock
        self._metrics = JsonlTail(folder / METRICS_FILE)
        self._events = JsonlTail(folder / EVENTS_FILE)
        self._sessions = JsonlTail(folder / SESSIONS_FILE)
        self._telemetry = JsonlTail(folder / TELEMETRY_FILE)
        self._progress, self.inside = IterationProgress(folder, clock), ""
        """How far the present iteration is."""
        self.changes = 0
        self.events_changed = 0
        """The value of `changes` at the newest event; so with `curves_changed` at the newest name of a metric."""
        self._events_kept: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)
        self._plan: list[dict[str, Any]] = []
        self._sessions_kept: deque[dict[str, Any]] = deque(maxlen=MOST_SESSIONS)
        self.facts = RunFacts(folder.name, {}, {}, RowSums(), [], [], None)
        self.problem, self.deleted = "", False
        """What is wrong with the folder."""
        self.unread: float | None = None
        """Which share of metrics.jsonl is not yet read; None once it was read to its end."""
        self.row_age_s: float | None = None
        """Seconds since metrics.jsonl was written."""
        self._forget_rows()

    def _forget_rows(self) -> None:
        self.generation = secrets.token_hex(4)
        self.sums, self.time_left = RowSums(), TimeLeft()
        self.newest: dict[str, float] = {}
        """The numbers of the newest row."""
        self.curves: dict[str, Thinned[Extremes]] = {}
        self._telemetry_reached = 0.0
        """The highest iteration of its rows: what is done again after a restart is not drawn twice."""
        self.phases, self.phase_names = Thinned[PhaseSeconds](PhaseSeconds.plus), list[str]()
        self.curves_changed = self.changes

    def read(self) -> None:
        """Read what is new, at most for about READ_S."""
        self._read_events()
        deadline = self._clock() + READ_S
        while True:
            new = self._metrics.read()
            if new.truncated:
                self._forget_rows()
                self._telemetry = JsonlTail(self._telemetry.path)
            for row in new.rows:
                self._add(row)
            if not new.rows or self._clock() > deadline:
                break
        self._read_telemetry()
        self._read_facts()
        self.inside = self._progress.read()
        try:
            file = os.lstat(self._metrics.path)
        except OSError:
            self.unread = self.row_age_s = None
            return
        left = max(0, file.st_size - self._metrics.position)
        self.unread = left / file.st_size if new.rows and left else None
        self.row_age_s = max(0.0, time.time() - file.st_mtime)

    def _read_telemetry(self) -> None:
        """What the ranks used, drawn over the iterations. A file that was thinned adds only what is new in it."""
        for row in self._telemetry.read().rows:
            iteration = number(row, "iteration")
            if iteration is None or iteration < self._telemetry_reached:
                continue
            self._telemetry_reached = iteration
            self.changes += 1
            for name in filter(of_ranks_use, row):
                value = number(row, name)
                if value is not None and (curve := self._curve(name)) is not None:
                    curve.add(Extremes.of(iteration, value), self.changes)

    def _read_facts(self) -> None:
        """Where the settings are gone or damaged, those that were read before stay."""
        events, sessions = [*self._plan, *self._events_kept], list(self._sessions_kept)
        try:
            self.facts, self.problem = RunFacts.read(self.folder, self.sums, events, sessions), ""
        except UserError as damage:
            in_use = RunFolder(self.folder).in_use()
            self.facts = replace(self.facts, sums=self.sums, events=events, sessions=sessions, in_use=in_use)
            self.problem = damage.found
        self.deleted = not os.path.isdir(self.folder)
        if self.deleted:
            self.problem = f"the folder {self.folder} is gone; this page shows what was read before"

    def _read_events(self) -> None:
        """Keep the newest plan, warnings and skipped updates, and all sessions."""
        for tail, kept in ((self._events, self._events_kept), (self._sessions, self._sessions_kept)):
            new = tail.read()
            if new.truncated:
                kept.clear()
            for row in new.rows:
                if tail is self._sessions or row.get("event") in RUN_EVENTS:
                    kept.append(row)
                elif row.get("event") == "plan":
                    self._plan = [row]
            if new.rows or new.truncated:
                self.changes += 1
                self.events_changed = self.changes

    def _add(self, row: dict[str, Any]) -> None:
        """One row of metrics.jsonl."""
        iteration, time_s = number(row, "iteration"), number(row, "time_s")
        if iteration is None:
            return
        self.changes += 1
        self.sums = self.sums.plus(row)
        if time_s is not None:
            self.time_left.add(int(iteration), time_s)
        self.newest = {name: value for name in row if (value := number(row, name)) is not None}
        seconds: dict[str, float] = {}
        for name, value in self.newest.items():
            if is_phase(name):
                seconds[name] = value
            elif (curve := self._curve(name)) is not None:
                curve.add(Extremes.of(iteration, value), self.changes)
        known = {name: value for name, value in seconds.items() if self._is_known_phase(name)}
        if known:
            self.phases.add(PhaseSeconds(iteration, iteration, 1, known), self.changes)

    def _curve(self, name: str) -> Thinned[Extremes] | None:
        found = self.curves.get(name)
        if found is None and len(self.curves) < MOST_CURVES and has_curve(name) and self._is_plain(name):
            self.curves_changed = self.changes
            found = self.curves[name] = Thinned(Extremes.plus)
        return found

    def _is_known_phase(self, name: str) -> bool:
        if name not in self.phase_names and len(self.phase_names) < MOST_PHASES and self._is_plain(name):
            self.phase_names.append(name)
        return name in self.phase_names

    @staticmethod
    def _is_plain(name: str) -> bool:
        return len(name) <= LONGEST_NAME and clean(name) == name
