"""What a run has come to: the `finished` event, and its last metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ranks.engine.runs.folder import METRICS_FILE, SESSIONS_FILE
from ranks.engine.runs.jsonl import read_rows
from ranks.engine.runs.metrics_rows import peak_memory_bytes, time_split
from ranks.engine.runs.sessions import goodput

RESULT_TAGS = ("train/", "val/", "rollout/", "arena/")


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
    rows = read_rows(folder / METRICS_FILE)
    metrics: dict[str, float] = {}
    metric_iterations: dict[str, int] = {}
    for row in rows:
        found = {k: v for k, v in row.items() if v is not None and k.startswith(RESULT_TAGS)}
        metrics.update(found)
        metric_iterations.update(dict.fromkeys(found, int(row["iteration"])))
    return {
        "event": "finished",
        **details,
        "metrics": metrics,
        "metric_iterations": metric_iterations,
        "time_split": time_split(rows),
        "goodput": goodput(rows, read_rows(folder / SESSIONS_FILE)),
        "peak_memory_bytes": peak_memory_bytes(device),
    }
