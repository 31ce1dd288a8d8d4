"""What one rank does in some iterations: when it calls collectives, how large they are, and when it waits for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from ranks.engine.liveness.beats import Collective


@dataclass(frozen=True)
class Call:
    """One collective. The times are seconds of the rank's own work since the start of the iteration: a time in which it
    waits for others does not count."""

    kind: Collective
    num_bytes: int
    """Of the tensor of an all-reduce; what this rank sends in any other collective."""
    start_s: float
    wait_s: float
    """When the rank needs the result; equal to `start_s` where the call itself waits."""
    on_host: bool = False
    """It goes through host memory, and not over the link between devices."""


@dataclass(frozen=True)
class IterationTrace:
    """One iteration."""

    work_s: float
    """Of the rank's own work."""
    calls: tuple[Call, ...]
    """In the order of their starts."""


@dataclass(frozen=True)
class Trace:
    """Iterations of rank 0 of `num_ranks`, recorded on one device. The other ranks did not exist."""

    num_ranks: int
    iterations: tuple[IterationTrace, ...]
    phases_s: Mapping[str, float]
    """Mean seconds of each phase of an iteration (data, compute, acting, ...)."""
    items: Mapping[str, float]
    """What an iteration processes on all ranks, by kind: samples, steps, games, ..."""
    evaluation_s: float
    """Of one evaluation."""
    save_s: float
    """Of one checkpoint."""
    saves_with_evaluation: bool
    """Whether each evaluation is followed by a save."""
    start_s: float
    """Of the whole command, what is no iteration: from its start to the first iteration, what the first one takes
    longer than later ones, and the end."""
    peak_bytes: int
    """The most memory that the rank held."""
    host_cpu_s: float | None = None
    """CPU seconds of an iteration, of the rank's process and all below it; None: not measured."""

    @property
    def work_s(self) -> float:
        """Mean seconds of an iteration's work."""
        return sum(iteration.work_s for iteration in self.iterations) / len(self.iterations)

    def as_json(self) -> dict[str, Any]:
        """For `of_json`."""
        calls = [
            [[call.kind.value, call.num_bytes, call.start_s, call.wait_s, call.on_host] for call in iteration.calls]
            for iteration in self.iterations
        ]
        return asdict(self) | {"iterations": [i.work_s for i in self.iterations], "calls": calls}

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> Trace:
        """Raises KeyError, TypeError or ValueError where the content is no trace."""
        iterations = [
            IterationTrace(float(work_s), tuple(_call(*call) for call in calls))
            for work_s, calls in zip(content["iterations"], content["calls"], strict=True)
        ]
        if not iterations:
            raise ValueError("it has no iterations")
        rest = {name: content[name] for name in cls.__dataclass_fields__ if name != "iterations"}
        return cls(iterations=tuple(iterations), **rest)


def _call(kind: int, num_bytes: int, start_s: float, wait_s: float, on_host: bool) -> Call:
    return Call(Collective(kind), int(num_bytes), float(start_s), float(wait_s), bool(on_host))


def iterations_of(marks: Sequence[float], calls: Sequence[Call]) -> tuple[IterationTrace, ...]:
    """Cut a whole recording. `marks`: where each iteration begins and the last one ends; `calls`: with times since the
    start of the recording."""
    found: list[IterationTrace] = []
    for begin, end in pairwise(marks):
        inside = [call for call in calls if begin <= call.start_s < end]
        shifted = [
            replace(call, start_s=call.start_s - begin, wait_s=min(max(call.wait_s, call.start_s), end) - begin)
            for call in inside
        ]
        found.append(IterationTrace(end - begin, tuple(shifted)))
    return tuple(found)
