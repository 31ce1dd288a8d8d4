"""Rows of metrics.jsonl: one for each iteration, written once the device has its numbers."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ranks.engine.update.step import StepStats

PHASES = ("data", "compute", "communication", "evaluation", "save", "other")


def no_time_spent() -> dict[str, float]:
    """Seconds by phase, and the items that updates took, of one iteration."""
    return {"data": 0.0, "compute": 0.0, "communication": 0.0, "evaluation": 0.0, "save": 0.0, "items": 0.0}


@dataclass
class Row:
    """One iteration's values as they come in. `time_s`: when it began."""

    iteration: int
    time_s: float
    iteration_s: float = 0.0
    entries: list[tuple[str, StepStats | Mapping[str, float]]] = field(
        default_factory=list[tuple[str, StepStats | Mapping[str, float]]]
    )
    spent: dict[str, float] = field(default_factory=no_time_spent)

    @property
    def settled(self) -> bool:
        return all(v.settled for _, v in self.entries if isinstance(v, StepStats))


def close_row(row: Row, device: torch.device) -> dict[str, Any]:
    """The row as JSON: tagged values, and where the iteration's time went (the phases add up to its wall time)."""
    out: dict[str, Any] = {"iteration": row.iteration, "time_s": round(row.time_s + row.iteration_s, 6)}
    for prefix, values in row.entries:
        if isinstance(values, StepStats):
            vote = values.read()
            out.update({f"{prefix}/{name}": value for name, value in vote.values.items()})
            out[f"{prefix}/grad_norm"] = vote.grad_norm
        else:
            out.update({f"{prefix}/{name}": float(value) for name, value in values.items()})
    items = row.spent.pop("items")
    known = sum(v for k, v in row.spent.items() if k != "save")
    for phase in PHASES[:-1]:
        out[f"time/{phase}_s"] = round(row.spent[phase], 6)
    out["time/other_s"] = round(max(0.0, row.iteration_s - known), 6)
    out["time/iteration_s"] = round(row.iteration_s + row.spent["save"], 6)
    if items:
        out["time/samples_per_second"] = round(items / row.iteration_s, 3)
    out["memory/peak_bytes"] = peak_memory_bytes(device)
    return out


def peak_memory_bytes(device: torch.device) -> int:
    """The most that this rank ever held: on the GPU, or resident in host memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def time_split(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds by phase over all iterations."""
    return {phase: round(sum(row.get(f"time/{phase}_s") or 0.0 for row in rows), 3) for phase in PHASES}
