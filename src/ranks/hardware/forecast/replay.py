"""Replay the trace of one rank on several ranks that are joined by a link: what an iteration takes, and why.

Each rank does the recorded work, a little faster or slower as the recorded iterations differ from each other. A
collective begins when the last rank has called it and the link is free. A rank that needs its result waits for its end.

    rank 0  | work ....... | work ......... | wait |
    rank 1  | work ... | work ............. | wait |
    link                   | bucket 0 | bucket 1 ..|
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranks.engine.liveness.beats import Collective
from ranks.hardware.forecast.trace import HOST_KINDS, Call, IterationTrace
from ranks.hardware.links.curve import Link

ITERATIONS = 64
"""In a replay; more of them change the mean by less than the recorded iterations differ."""


@dataclass(frozen=True)
class Replayed:
    """Mean seconds of an iteration: what a rank works, waits for slower ranks, and waits for the link. They add up."""

    work_s: float
    skew_s: float
    exposed_s: float
    link_s: float
    """How long the link was busy, hidden behind work or not."""

    @property
    def seconds(self) -> float:
        """Of the whole iteration."""
        return self.work_s + self.skew_s + self.exposed_s


def seconds_of(call: Call, link: Link, num_ranks: int) -> float:
    """What a collective takes when all ranks have called it."""
    if call.kind is Collective.ALL_REDUCE:
        return link.all_reduce_s(num_ranks, call.num_bytes)
    if call.kind is Collective.ALL_TO_ALL:
        return link.all_to_all_s(num_ranks, call.num_bytes)
    if call.kind in (Collective.ALL_GATHER, Collective.BROADCAST):
        return link.all_gather_s(num_ranks, call.num_bytes)
    return link.host_s(num_ranks, call.num_bytes)


def replay(
    iterations: Sequence[IterationTrace],
    link: Link,
    num_ranks: int,
    *,
    speeds: Sequence[float] | None = None,
    seed: int = 0,
    length: int = ITERATIONS,
) -> Replayed:
    """An iteration of `num_ranks` ranks. `speeds`: of each rank, relative to the recorded one; by default equal."""
    rng = np.random.Generator(np.random.Philox(seed))
    work = np.array([iteration.work_s for iteration in iterations])
    relative = np.ones(num_ranks) if speeds is None else 1 / np.array(speeds, np.float64)
    simulation = _Simulation(link, num_ranks)
    for _ in range(length):
        base = iterations[int(rng.integers(len(iterations)))]
        own_s = work[rng.integers(len(work), size=num_ranks)] * relative
        simulation.iteration(base, own_s / max(base.work_s, 1e-12))
    return simulation.result(length)


class _Simulation:
    """The clocks of all ranks and of the link."""

    def __init__(self, link: Link, num_ranks: int) -> None:
        self.link, self.num_ranks = link, num_ranks
        self.clock: NDArray[np.float64] = np.zeros(num_ranks)
        self.work, self.skew, self.exposed, self.busy = np.zeros(num_ranks), 0.0, 0.0, 0.0
        self.free = {True: 0.0, False: 0.0}
        """When the host's way and the device's way are free."""

    def iteration(self, trace: IterationTrace, factor: NDArray[np.float64]) -> None:
        """One iteration. `factor`: each rank's time for the work, relative to the trace."""
        begun: dict[int, tuple[float, float]] = {}
        now = 0.0
        for at, index, starts in _order(trace.calls):
            self._advance(factor * (at - now))
            now = at
            if starts:
                begun[index] = self._start(trace.calls[index])
            else:
                self._wait(*begun[index])
        self._advance(factor * (trace.work_s - now))

    def _advance(self, seconds: NDArray[np.float64]) -> None:
        self.clock += seconds
        self.work += seconds

    def _start(self, call: Call) -> tuple[float, float]:
        """(when all ranks have called it, when it ends)."""
        on_host = call.kind in HOST_KINDS
        ready = float(self.clock.max())
        seconds = seconds_of(call, self.link, self.num_ranks)
        end = max(ready, self.free[on_host]) + seconds
        self.free[on_host] = end
        self.busy += seconds
        return ready, end

    def _wait(self, ready: float, end: float) -> None:
        """Every rank waits for the end: until `ready` for the slowest rank, then for the link."""
        waits = np.maximum(0.0, end - self.clock)
        skew = np.minimum(waits, np.maximum(0.0, ready - self.clock))
        self.skew += float(skew.mean())
        self.exposed += float((waits - skew).mean())
        np.maximum(self.clock, end, out=self.clock)

    def result(self, length: int) -> Replayed:
        work = float(self.work.mean())
        # what is left until the slowest rank ends is a wait of the next iteration
        rest = max(0.0, float(self.clock.max()) - (work + self.skew + self.exposed))
        return Replayed(work / length, (self.skew + rest) / length, self.exposed / length, self.busy / length)


def _order(calls: Sequence[Call]) -> list[tuple[float, int, bool]]:
    """(time, index of the call, whether it starts or is waited for), in the order of a rank's program."""
    events = [(call.start_s, 0, index, True) for index, call in enumerate(calls)]
    events += [(call.wait_s, 1, index, False) for index, call in enumerate(calls)]
    return [(at, index, starts) for at, _, index, starts in sorted(events)]


def limiting_term(replayed: Replayed, phases_s: Mapping[str, float]) -> str:
    """The largest part of an iteration, in words."""
    total = sum(phases_s.values()) or math.inf
    scaled = {name: replayed.work_s * seconds / total for name, seconds in phases_s.items()}
    parts = {
        "data": scaled.get("data", 0.0),
        "communication": replayed.exposed_s,
        "the slowest rank": replayed.skew_s,
        **{name: seconds for name, seconds in scaled.items() if name not in ("data", "communication", "other")},
    }
    return max(parts, key=lambda name: parts[name])
