"""Goodput of a run: the share of its sessions' wall time that was spent in iterations whose work
was kept."""

from __future__ import annotations

from typing import Any


def wall_seconds(sessions: list[dict[str, Any]]) -> float:
    """Seconds of all sessions, from start to end. A session that was killed ends when its
    supervised restart begins, or at its last write, which the next session has found.
    """
    total = 0.0
    started: float | None = None
    for record in sessions:
        when = float(record["time"])
        if record["event"] in ("opened", "resumed"):
            if started is not None:
                total += (when if record["attempt"] > 0 else float(record["last_sign"])) - started
            started = float(record["joined"]) if record["attempt"] == 0 else when
        elif record["event"] in ("stopped", "finished") and started is not None:
            total += when - started
            started = None
    return total


def goodput(rows: list[dict[str, Any]], sessions: list[dict[str, Any]]) -> float | None:
    """Between 0 and 1; None while nothing was timed."""
    wall_s = wall_seconds(sessions)
    useful_s = sum(float(row["time/iteration_s"]) for row in rows)
    return min(1.0, useful_s / wall_s) if wall_s > 0 else None
