"""The sessions of a run: how long each one took, and its goodput, the share of their time that was spent in iterations
whose work was kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ranks.engine.files.jsonl import number

NOTICES = ("slow_rank", "rank_goes_on", "straggler", "straggler_over", "uneven_gpus")
"""Events that the launcher records while a session goes on. They begin and end nothing."""
BEGINS = ("opened", "resumed")
ENDS = ("stopped", "finished", "gave_up")


@dataclass(frozen=True)
class SessionTime:
    """One session, from its start to its end."""

    begin: Mapping[str, Any]
    """The record of its start."""
    seconds: float


def newest_state(newest_first: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The newest record that says how a session began or ended; empty without one."""
    return next((record for record in newest_first if record.get("event") not in NOTICES), {})


def session_times(sessions: Iterable[Mapping[str, Any]], last_sign: float | None = None) -> Iterator[SessionTime]:
    """How long each session took. `sessions`: the rows of sessions.jsonl. `last_sign`: Unix time at which the run was
    last seen to work, for a newest session without an end.

    A session ends where it stopped, finished, failed or gave up. A supervised restart counts for the session before it,
    also after a failure. A session that was killed wrote no end: it ends at its last write, which the next session has
    found, or at `last_sign`. Sessions with missing facts are left out.
    """
    begin: Mapping[str, Any] = {}
    started: float | None = None
    failed: float | None = None
    for record in sessions:
        when, event = number(record, "time"), record.get("event")
        if when is None:
            continue
        if event in BEGINS:
            restarted = (number(record, "attempt") or 0) > 0
            if started is not None:
                last_write = number(record, "last_sign") if failed is None else failed
                yield _until(when if restarted else last_write, started, begin)
            joined = number(record, "joined")
            begin, started, failed = record, when if restarted or joined is None else joined, None
        elif event == "failed":
            failed = when
        elif event == "restarted":
            failed = None
        elif event in ENDS and started is not None:
            yield _until(when, started, begin)
            started = None
    if started is not None:
        yield _until(last_sign if failed is None else failed, started, begin)


def _until(end: float | None, started: float, begin: Mapping[str, Any]) -> SessionTime:
    return SessionTime(begin, max(0.0, end - started) if end is not None else 0.0)


def wall_seconds(sessions: Iterable[Mapping[str, Any]], last_sign: float | None = None) -> float:
    """Seconds of all sessions, as `session_times` has them."""
    return sum(session.seconds for session in session_times(sessions, last_sign))


def goodput(useful_s: float, sessions: Iterable[Mapping[str, Any]], last_sign: float | None = None) -> float | None:
    """Between 0 and 1; None while nothing was timed. `useful_s`: seconds of all iterations whose work was kept."""
    wall_s = wall_seconds(sessions, last_sign)
    return min(1.0, useful_s / wall_s) if wall_s > 0 else None
