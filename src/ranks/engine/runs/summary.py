"""What a run has come to: the `finished` event, and its last metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ranks.engine.files.jsonl import iter_rows
from ranks.engine.runs.folder import METRICS_FILE, SESSIONS_FILE
from ranks.engine.runs.metrics_rows import RowTotals, peak_memory_bytes
from ranks.engine.runs.sessions import goodput


@dataclass(frozen=True)
class Summary:
    """The result of a run, the same on every rank. `metrics`: the last value of each; `complete`:
    all iterations are done."""

    folder: Path
    iteration: int
    complete: bool
    metrics: dict[str, float]
    fingerprint: str


def finished_event(folder: Path, device: torch.device, **details: Any) -> dict[str, Any]:
    """The last value of each metric with its iteration, and where the time of all sessions went, read
    from the run's own files."""
    totals = RowTotals()
    for row in iter_rows(folder / METRICS_FILE):
        totals.add(row)
    return {
        "event": "finished",
        **details,
        "metrics": totals.results,
        "metric_iterations": totals.result_iterations,
        "time_split": {phase: round(seconds, 3) for phase, seconds in totals.seconds.items()},
        "goodput": goodput(totals.iterations_s, iter_rows(folder / SESSIONS_FILE)),
        "peak_memory_bytes": peak_memory_bytes(device),
    }
