"""Goodput from a run's sessions: useful seconds (iterations that stand) over wall seconds that were
paid for."""

from __future__ import annotations

from typing import Any


def wall_seconds(sessions: list[dict[str, Any]]) -> float:
    """Seconds from each start to its end. A session that was killed ends where its supervised
    successor starts, or at the last sign that the next one found of it.
    """
    total = 0.0
    begun: float | None = None
    for record in sessions:
        when = float(record["time"])
        if record["event"] in ("opened", "resumed"):
            if begun is not None:
                total += (when if record["attempt"] > 0 else float(record["last_sign"])) - begun
            begun = float(record["joined"]) if record["attempt"] == 0 else when
        elif record["event"] in ("stopped", "finished") and begun is not None:
            total += when - begun
            begun = None
    return total


def goodput(rows: list[dict[str, Any]], sessions: list[dict[str, Any]]) -> float | None:
    """Between 0 and 1; none while nothing was timed."""
    wall_s = wall_seconds(sessions)
    useful_s = sum(float(row["time/iteration_s"]) for row in rows)
    return min(1.0, useful_s / wall_s) if wall_s > 0 else None
