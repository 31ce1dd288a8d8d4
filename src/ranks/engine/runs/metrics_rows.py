"""Rows of metrics.jsonl: one for each iteration, written when the device has computed its
numbers."""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ranks.engine.distributed.session import PhaseTimes
from ranks.engine.files.jsonl import number
from ranks.engine.update.step import StepStats

PHASES: tuple[str, ...] = ("data", "compute", "communication", "evaluation", "save")
"""Phases that every row has; others (acting) only where a loop or a collector timed them."""
NO_SECONDS: dict[str, float] = dict.fromkeys(PHASES, 0.0)
RESULT_TAGS = ("train/", "val/", "rollout/", "match/")


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

    def as_json(self, peak_bytes: int) -> dict[str, Any]:
        """Tagged values, and where the iteration's time went: the phases add up to its wall time.

        `iteration` is the number of iterations finished with this one, as in the names of
        checkpoints. Speeds (`time/samples_per_second`) are those of training: the time of an
        evaluation does not count.
        """
        out: dict[str, Any] = {"iteration": self.iteration + 1, "time_s": round(self.time_s + self.iteration_s, 6)}
        for prefix, values in self.entries:
            if isinstance(values, StepStats):
                vote = values.read()
                out.update({f"{prefix}/{name}": value for name, value in vote.values.items()})
                out[f"{prefix}/grad_norm"] = vote.grad_norm
            else:
                out.update({f"{prefix}/{name}": float(value) for name, value in values.items()})
        seconds = {**NO_SECONDS, **self.times.seconds}
        known = sum(seconds.values()) - seconds["save"]  # saves happen between two iterations
        seconds["other"] = max(0.0, self.iteration_s - known)
        for phase, phase_s in seconds.items():
            out[f"time/{phase}_s"] = round(phase_s, 6)
        out["time/iteration_s"] = round(self.iteration_s + seconds["save"], 6)
        training_s = self.iteration_s - seconds["evaluation"]
        for item, count in self.times.items.items():
            out[f"time/{item}_per_second"] = round(count / training_s, 3)
        out["memory/peak_bytes"] = peak_bytes
        return out


class UnwrittenRows:
    """The rows that metrics.jsonl does not have yet. `current`: of the iteration under way; finished
    rows wait until their votes are read."""

    def __init__(self, write: Callable[[Mapping[str, Any]], None], peak_bytes: Callable[[], int]) -> None:
        self.current: MetricsRow | None = None
        self._write, self._peak_bytes = write, peak_bytes
        self._finished: list[MetricsRow] = []

    def begin(self, iteration: int, time_s: float, save_s: float) -> MetricsRow:
        """The row of a new iteration. `save_s`: seconds of the saves before it."""
        self.current = MetricsRow(iteration, time_s)
        self.current.times.seconds["save"] = save_s
        return self.current

    def restart(self, time_s: float) -> None:
        """The current iteration begins now. What it has done before (it has waited for its first batch) does not
        count."""
        if self.current is not None:
            self.current.time_s = time_s
            seconds = self.current.times.seconds
            seconds.update({phase: 0.0 for phase in seconds if phase != "save"})

    def finish(self, time_s: float) -> None:
        """The current iteration has ended."""
        assert self.current is not None
        self.current.iteration_s = time_s - self.current.time_s
        self._finished.append(self.current)
        self.current = None

    def write_resolved(self) -> None:
        """Write the finished rows, in order, up to the first whose vote is still under way."""
        while self._finished and self._finished[0].resolved:
            self._write(self._finished.pop(0).as_json(self._peak_bytes()))


class PeakMemory:
    """The most memory that this rank has held, read at most once a second: to ask CUDA's allocator
    takes longer than a short update."""

    INTERVAL_S = 1.0

    def __init__(self, ask: Callable[[], int], clock: Callable[[], float] = time.perf_counter) -> None:
        """`ask`: `peak_memory_bytes` of this rank's device."""
        self._ask, self._clock = ask, clock
        self._bytes, self._asked_at_s = 0, -math.inf

    def read(self) -> int:
        """Bytes, at most a second old."""
        if self._clock() - self._asked_at_s >= self.INTERVAL_S:
            self._bytes, self._asked_at_s = self._ask(), self._clock()
        return self._bytes


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
        self.result_iterations: dict[str, int] = {}
        """The iteration of the row that has the last value of a result."""
        self.seconds: dict[str, float] = dict.fromkeys((*PHASES, "other"), 0.0)
        self.iterations_s = 0.0

    def add(self, row: Mapping[str, Any]) -> None:
        for name in row:
            value = number(row, name)
            if value is None:
                continue
            if name.startswith(RESULT_TAGS):
                self.results[name] = value
                self.result_iterations[name] = int(number(row, "iteration") or 0)
            elif name == "time/iteration_s":
                self.iterations_s += value
            elif name.startswith("time/") and name.endswith("_s"):
                phase = name.removeprefix("time/").removesuffix("_s")
                self.seconds[phase] = self.seconds.get(phase, 0.0) + value
