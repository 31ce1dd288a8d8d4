"""Goodput of a run: the share of its sessions' wall time that was spent in iterations whose work
was kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ranks.engine.files.jsonl import number

NOTICES = ("slow_rank", "rank_goes_on", "straggler", "straggler_over", "uneven_gpus")
"""Events that the launcher records while a session goes on. They begin and end nothing."""


def newest_state(newest_first: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The newest record that says how a session began or ended; empty without one."""
    return next((record for record in newest_first if record.get("event") not in NOTICES), {})


def wall_seconds(sessions: Iterable[Mapping[str, Any]]) -> float:
    """Seconds of all sessions, from start to end. A session that was killed ends when its
    supervised restart begins, or at its last write, which the next session has found. Records with
    missing facts are left out.
    """
    total = 0.0
    started: float | None = None
    for record in sessions:
        when, event = number(record, "time"), record.get("event")
        if when is None:
            continue
        if event in ("opened", "resumed"):
            restarted = (number(record, "attempt") or 0) > 0
            if started is not None:
                ended = when if restarted else number(record, "last_sign")
                total += (ended if ended is not None else started) - started
            joined = number(record, "joined")
            started = when if restarted or joined is None else joined
        elif event in ("stopped", "finished") and started is not None:
            total += when - started
            started = None
    return total


def goodput(useful_s: float, sessions: Iterable[Mapping[str, Any]]) -> float | None:
    """Between 0 and 1; None while nothing was timed. `useful_s`: seconds of all iterations whose
    work was kept."""
    wall_s = wall_seconds(sessions)
    return min(1.0, useful_s / wall_s) if wall_s > 0 else None
