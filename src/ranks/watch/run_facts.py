"""What the files of a run say, for a report and for the served page. Anything may be missing or odd in them."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ranks.engine.files.jsonl import last_rows, number
from ranks.engine.runs.folder import TELEMETRY_FILE, RunFolder
from ranks.engine.runs.sessions import BEGINS, NOTICES, goodput, newest_state, session_times, wall_seconds
from ranks.progress import duration
from ranks.watch.lines import JsonRow

SHOWN = (
    "opened",
    "resumed",
    "finished",
    "stopped",
    "failed",
    "hangs",
    "restarted",
    "gave_up",
    *NOTICES,
    "skipped_update",
    "warning",
)
"""The events that are listed."""
RUN_EVENTS = ("warning", "skipped_update")
"""Those of them that are in events.jsonl; the others are in sessions.jsonl."""
MOST_EVENTS = 100


@dataclass(frozen=True)
class RowSums:
    """What all rows of metrics.jsonl together say."""

    iterations: int = 0
    """That are finished."""
    time_s: float = 0.0
    """Of training, all sessions together."""
    kept_s: float = 0.0
    """Of the iterations whose work was kept."""

    @staticmethod
    def of(rows: Iterable[JsonRow]) -> RowSums:
        """Of these rows."""
        return functools.reduce(RowSums.plus, rows, RowSums())

    def plus(self, row: JsonRow) -> RowSums:
        """With one more row."""
        done, time_s = number(row, "iteration"), number(row, "time_s")
        return RowSums(
            self.iterations if done is None else int(done),
            self.time_s if time_s is None else time_s,
            self.kept_s + (number(row, "time/iteration_s") or 0.0),
        )


@dataclass(frozen=True)
class RunCost:
    """What a run has cost."""

    total: float
    low: float
    high: float
    """The lowest and the highest price of an hour."""
    paid: int
    """Sessions whose price is known."""
    sessions: int

    @property
    def words(self) -> str:
        """'6.00 at 3.00 an hour, for all sessions'."""
        prices = f"{self.low:,.2f}" if self.low == self.high else f"{self.low:,.2f} to {self.high:,.2f}"
        which = "for all sessions" if self.paid == self.sessions else f"for {self.paid} of {self.sessions} sessions"
        return f"{self.total:,.2f} at {prices} an hour, {which}"


@dataclass(frozen=True)
class RunFacts:
    """What the files of a run folder say, without its curves."""

    name: str
    settings: JsonRow
    provenance: JsonRow
    """Versions, hardware and commit from run.json."""
    sums: RowSums
    events: Sequence[JsonRow]
    sessions: Sequence[JsonRow]
    in_use: bool | None
    """None where the lock belongs to another user."""
    sampled_at: float | None = None
    """Unix time of the newest row of telemetry.jsonl."""

    @classmethod
    def read(cls, folder: Path, sums: RowSums, events: Sequence[JsonRow], sessions: Sequence[JsonRow]) -> RunFacts:
        """Add the settings, the lock and the newest sample to the rows of the three files. Raises UserError where the
        settings are damaged."""
        run, sample = RunFolder(folder), next(last_rows(folder / TELEMETRY_FILE), {})
        settings, provenance = run.read_settings(), run.read_run()
        return cls(folder.name, settings, provenance, sums, events, sessions, run.in_use(), number(sample, "time"))

    @property
    def plan(self) -> JsonRow:
        """The newest plan; empty without one."""
        return next((event for event in reversed(self.events) if event.get("event") == "plan"), {})

    @property
    def goal(self) -> int | None:
        """Iterations after which the run is finished."""
        goal = number(self.plan, "iterations")
        return None if goal is None else int(goal)

    @property
    def iterations(self) -> str:
        """'120 of 600'."""
        return f"{self.sums.iterations:,}" + (f" of {self.goal:,}" if self.goal is not None else "")

    def wall_s(self, now: float) -> float:
        """From the start of each session to its end, added up; `now` where one is running."""
        return wall_seconds(self.sessions, self._last_sign(now))

    def goodput(self, now: float) -> float:
        """The share of the time of all sessions that went into kept iterations."""
        return goodput(self.sums.kept_s, self.sessions, self._last_sign(now)) or 0.0

    def _last_sign(self, now: float) -> float | None:
        """When the run was last seen to work: now where it is running; else at the newest row of metrics or telemetry.
        None where no file says it."""
        if self.in_use:
            return now
        plan_at, planned_s = number(self.plan, "time"), number(self.plan, "time_s")
        signs = [self.sampled_at] if self.sampled_at is not None else []
        if plan_at is not None and planned_s is not None:
            signs.append(plan_at + max(0.0, self.sums.time_s - planned_s))
        return max(signs, default=None)

    def cost(self, price: float | None, now: float) -> RunCost | None:
        """Of all sessions, where an hour of the machine costs `price`; without it of those that were started with a
        price of their own. None where no price is known."""
        times = list(session_times(self.sessions, self._last_sign(now)))
        prices = [number(each.begin, "price") if price is None else price for each in times]
        paid = [(each.seconds, an_hour) for each, an_hour in zip(times, prices, strict=True) if an_hour is not None]
        if price is None and not paid:
            return None
        total = sum(seconds / 3600 * an_hour for seconds, an_hour in paid)
        known = [an_hour for _, an_hour in paid] or [price or 0.0]
        return RunCost(total, min(known), max(known), len(paid), len(times))

    def facts(self, price: float | None, now: float) -> Iterator[tuple[str, str]]:
        """The rows of a table about the run."""
        plan = self.plan
        yield "workload", str(self.settings.get("workload", "-"))
        yield "iterations", self.iterations
        yield "state", self.state
        devices = plan.get("devices")
        found = ", ".join(sorted(set(map(str, cast("list[Any]", devices))))) if isinstance(devices, list) else ""
        yield "ranks", f"{plan.get('ranks', '?')} on {found or '?'}, {plan.get('mode', '?')} mode"
        parameters = plan.get("parameters")
        yield "parameters", f"{parameters:,}" if isinstance(parameters, int) else "-"
        yield "time", f"{duration(self.sums.time_s)} of kept training, {duration(self.wall_s(now))} in all sessions"
        yield "goodput", f"{self.goodput(now):.1%} of the time of all sessions went into kept iterations"
        if (cost := self.cost(price, now)) is not None:
            yield "cost", cost.words
        for name in ("versions", "hardware"):
            part = self.provenance.get(name)
            if isinstance(part, dict):
                yield name, ", ".join(f"{key} {value}" for key, value in cast("dict[str, Any]", part).items())
        yield "commit", str(self.provenance.get("git") or "-")

    @property
    def state(self) -> str:
        """running, finished, stopped, ..."""
        return "running" if self.in_use else last_state(reversed(self.sessions), self.in_use)

    def history(self) -> Iterator[tuple[str, str, str]]:
        """(when, what, details) of starts, ends, faults and warnings, in the order of time; the newest where there are
        many."""
        found = [*self._session_events(), *self._run_events()]
        for at, what, details in sorted(found, key=lambda event: event[0])[-MOST_EVENTS:]:
            yield date_and_time(at), what, details

    def _session_events(self) -> Iterator[tuple[float, str, str]]:
        for session in self.sessions:
            at, what = number(session, "time"), str(session.get("event"))
            if at is not None and what in SHOWN:
                hidden = ("event", "time", "time_s", "joined", "last_sign")
                facts = ", ".join(f"{k} {str(v)[:300]}" for k, v in session.items() if k not in hidden)
                yield at, what, str(session.get("text", ""))[:300] if what in NOTICES else facts

    def _run_events(self) -> Iterator[tuple[float, str, str]]:
        for event in self.events:
            at, what = number(event, "time"), str(event.get("event"))
            if at is not None and what in RUN_EVENTS:
                yield at, what, f"iteration {event.get('iteration')}: {str(event.get('text', ''))[:300]}"


def last_state(newest_first: Iterable[JsonRow], in_use: bool | None) -> str:
    """How a run ended, by its records in sessions.jsonl; one that wrote no end was killed. `in_use`: None where
    another user may hold the lock."""
    event = str(newest_state(newest_first).get("event", "unknown"))
    if event in BEGINS:
        return "unknown" if in_use is None else "killed"
    return event


def date_and_time(seconds: float) -> str:
    """Of Unix time in UTC; '?' for a number that is no time."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "?"
