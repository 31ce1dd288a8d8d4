"""What the files of a run say, for a report. Anything may be missing in them, also while the run trains."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranks.engine.files.jsonl import iter_rows, number
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, SESSIONS_FILE, RunFolder
from ranks.engine.runs.sessions import wall_seconds
from ranks.progress import duration

JsonRow = Mapping[str, Any]
BEGINS = ("opened", "resumed")
SHOWN = (
    "opened",
    "resumed",
    "finished",
    "stopped",
    "failed",
    "hangs",
    "restarted",
    "gave_up",
    "skipped_update",
    "warning",
)
"""The events that a report lists."""
MOST_EVENTS = 100


@dataclass(frozen=True)
class RunFacts:
    """The content of a run folder."""

    name: str
    settings: JsonRow
    provenance: JsonRow
    """Versions, hardware and commit from run.json."""
    rows: Sequence[JsonRow]
    events: Sequence[JsonRow]
    sessions: Sequence[JsonRow]
    in_use: bool

    @classmethod
    def read(cls, folder: Path) -> RunFacts:
        """Raises UserError where the settings are damaged."""
        run = RunFolder(folder)
        return cls(
            folder.name,
            run.read_settings(),
            run.read_run(),
            [row for row in iter_rows(folder / METRICS_FILE) if number(row, "iteration") is not None],
            list(iter_rows(folder / EVENTS_FILE)),
            list(iter_rows(folder / SESSIONS_FILE)),
            bool(run.in_use()),
        )

    @property
    def plan(self) -> JsonRow:
        """The newest plan; empty without one."""
        return next((event for event in reversed(self.events) if event.get("event") == "plan"), {})

    @property
    def time_s(self) -> float:
        """Of training, all sessions together."""
        return next((found for row in reversed(self.rows) if (found := number(row, "time_s")) is not None), 0.0)

    def wall_s(self, now: float) -> float:
        """From the start of each session to its end, added up; `now` where one is running."""
        running = [{"event": "stopped", "time": now}] if self.in_use else []
        return wall_seconds([*self.sessions, *running])

    def facts(self, price: float | None, now: float) -> Iterator[tuple[str, str]]:
        """The rows of the table at the head."""
        plan, done = self.plan, int(number(self.rows[-1], "iteration") or 0) if self.rows else 0
        goal = plan.get("iterations")
        yield "workload", str(self.settings.get("workload"))
        yield "iterations", f"{done:,}" + (f" of {goal:,}" if isinstance(goal, int) else "")
        yield "state", self.state
        devices = ", ".join(sorted({str(device) for device in plan.get("devices") or ()}))
        yield "ranks", f"{plan.get('ranks', '?')} on {devices or '?'}, {plan.get('mode', '?')} mode"
        parameters = plan.get("parameters")
        yield "parameters", f"{parameters:,}" if isinstance(parameters, int) else "-"
        wall_s = self.wall_s(now)
        yield "time", f"{duration(self.time_s)} of kept training, {duration(wall_s)} in all sessions"
        kept_s = sum(number(row, "time/iteration_s") or 0.0 for row in self.rows)
        share = min(1.0, kept_s / wall_s) if wall_s else 0.0
        yield "goodput", f"{share:.1%} of the time of all sessions went into kept iterations"
        if price is not None:
            yield "cost", f"{price * wall_s / 3600:,.2f} at {price:,.2f} an hour, for all sessions"
        for name in ("versions", "hardware"):
            part = self.provenance.get(name)
            if isinstance(part, dict):
                yield name, ", ".join(f"{key} {value}" for key, value in part.items())
        yield "commit", str(self.provenance.get("git") or "-")

    @property
    def state(self) -> str:
        """running, finished, stopped, ..."""
        if self.in_use:
            return "running"
        last = next((str(session.get("event")) for session in reversed(self.sessions)), "unknown")
        return "killed" if last in BEGINS else last

    def history(self) -> Iterator[tuple[str, str, str]]:
        """(when, what, details) of starts, ends, faults and warnings, in the order of time; the newest where there are
        many."""
        found = [*self._session_events(), *self._run_events()]
        for at, what, details in sorted(found, key=lambda event: event[0])[-MOST_EVENTS:]:
            yield time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)), what, details

    def _session_events(self) -> Iterator[tuple[float, str, str]]:
        for session in self.sessions:
            at, what = number(session, "time"), str(session.get("event"))
            if at is not None and what in SHOWN:
                hidden = ("event", "time", "time_s", "joined", "last_sign")
                yield at, what, ", ".join(f"{k} {str(v)[:300]}" for k, v in session.items() if k not in hidden)

    def _run_events(self) -> Iterator[tuple[float, str, str]]:
        """Warnings and skipped updates have the time of training; the first session's start is added."""
        start = next((at for session in self.sessions if (at := number(session, "time")) is not None), None)
        for event in self.events:
            at, what = number(event, "time_s"), str(event.get("event"))
            if start is not None and at is not None and what in ("warning", "skipped_update"):
                yield start + at, what, f"iteration {event.get('iteration')}: {str(event.get('text', ''))[:300]}"

    def metrics(self) -> dict[str, list[str]]:
        """The metrics that have numbers, by the part of their names before the first slash, in the order of the
        rows."""
        names = dict.fromkeys(
            name for row in self.rows for name in row if "/" in name and number(row, name) is not None
        )
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(name.split("/")[0], []).append(name)
        return groups

    def series(self, name: str) -> tuple[list[float], list[float]]:
        """(iterations, values) of the rows that have a finite number under a name."""
        pairs = [(float(row["iteration"]), value) for row in self.rows if (value := number(row, name)) is not None]
        return [at for at, _ in pairs], [value for _, value in pairs]
