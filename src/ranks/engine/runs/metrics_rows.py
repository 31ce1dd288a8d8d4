"""Rows of metrics.jsonl: one for each iteration, written when the device has computed its
numbers."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ranks.engine.distributed.session import PhaseTimes
from ranks.engine.files.jsonl import number
from ranks.engine.update.step import StepStats

PHASES: tuple[str, ...] = ("data", "compute", "communication", "evaluation", "save")
"""Phases that every row has; others (acting) only where a loop or a collector timed them."""
RESULT_TAGS = ("train/", "val/", "rollout/", "arena/")


@dataclass
class MetricsRow:
    """One iteration's values as they come in. `iteration`: counts from 0; `time_s`: when it
    began."""

    iteration: int
    time_s: float
    iteration_s: float = 0.0
    entries: list[tuple[str, StepStats | Mapping[str, float]]] = field(
        default_factory=list[tuple[str, StepStats | Mapping[str, float]]]
    )
    times: PhaseTimes = field(default_factory=PhaseTimes)

    @property
    def resolved(self) -> bool:
        """Whether all its votes were read."""
        return all(v.resolved for _, v in self.entries if isinstance(v, StepStats))

    def as_json(self, device: torch.device) -> dict[str, Any]:
        """Tagged values, and where the iteration's time went: the phases add up to its wall time.

        `iteration` is the number of iterations finished with this one, as in the names of
        checkpoints.
        """
        out: dict[str, Any] = {"iteration": self.iteration + 1, "time_s": round(self.time_s + self.iteration_s, 6)}
        for prefix, values in self.entries:
            if isinstance(values, StepStats):
                vote = values.read()
                out.update({f"{prefix}/{name}": value for name, value in vote.values.items()})
                out[f"{prefix}/grad_norm"] = vote.grad_norm
            else:
                out.update({f"{prefix}/{name}": float(value) for name, value in values.items()})
        seconds = dict.fromkeys(PHASES, 0.0) | self.times.seconds
        known = sum(s for phase, s in seconds.items() if phase != "save")  # saves happen between two iterations
        seconds["other"] = max(0.0, self.iteration_s - known)
        out.update({f"time/{phase}_s": round(s, 6) for phase, s in seconds.items()})
        out["time/iteration_s"] = round(self.iteration_s + seconds["save"], 6)
        for item, count in self.times.items.items():
            out[f"time/{item}_per_second"] = round(count / self.iteration_s, 3)
        out["memory/peak_bytes"] = peak_memory_bytes(device)
        return out


def peak_memory_bytes(device: torch.device) -> int:
    """The most memory that this rank has held: on the GPU, or resident in host memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class RowTotals:
    """What a run's finished event says about all its rows, added up row by row: the last value of
    each result, and the seconds of each phase and of all iterations."""

    def __init__(self) -> None:
        self.results: dict[str, float] = {}
        self.seconds: dict[str, float] = dict.fromkeys((*PHASES, "other"), 0.0)
        self.iterations_s = 0.0

    def add(self, row: Mapping[str, Any]) -> None:
        for name in row:
            value = number(row, name)
            if value is None:
                continue
            if name.startswith(RESULT_TAGS):
                self.results[name] = value
            elif name == "time/iteration_s":
                self.iterations_s += value
            elif name.startswith("time/") and name.endswith("_s"):
                phase = name.removeprefix("time/").removesuffix("_s")
                self.seconds[phase] = self.seconds.get(phase, 0.0) + value
