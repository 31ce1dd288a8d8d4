"""Replay the trace of one rank on several ranks that are joined by a link: what an iteration takes, and why.

All ranks do the work of the same recorded iteration: what makes an iteration longer (a growing window, every tenth
one with more work) does so on all of them. Each rank is a little faster or slower, as recorded iterations differ from
their neighbours. A collective begins when the last rank has called it and its channel is free. A rank that needs the
result waits for its end.

    rank 0  | work ....... | work ......... | wait |
    rank 1  | work ... | work ............. | wait |
    link                   | bucket 0 | bucket 1 ..|
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ranks.engine.liveness.beats import Collective
from ranks.hardware.forecast.trace import Call, IterationTrace
from ranks.hardware.links.curve import Link

LEAST, MOST = 64, 256
"""Iterations of a replay: each recorded one equally often, or where there are more, evenly chosen ones."""
NEIGHBOURS = 2
"""On each side of an iteration; the median of all of them is what its work is compared with."""
SIGMA_OF_MAD = 1.4826 * 1.34
"""Standard deviation of a normal distribution, relative to the median absolute deviation from the median of five
neighbours, of which the value itself is one."""
HOST_CORES, LEAST_HOST_SHARE = "the host's cores", 0.05
"""A limit, and from which share of an iteration on it is named: CPU ranks use all cores without being too many."""
OUTLIER = 3.0
"""Standard deviations beyond which a longer iteration is one on all ranks."""


@dataclass(frozen=True)
class Replayed:
    """Mean seconds of an iteration: what a rank works, waits for slower ranks, for the link, and for the cores of the
    host. They add up."""

    work_s: float
    skew_s: float
    exposed_s: float
    link_s: float
    """How long the link was busy, hidden behind work or not."""
    host_s: float = 0.0

    @property
    def seconds(self) -> float:
        """Of the whole iteration."""
        return self.work_s + self.skew_s + self.exposed_s + self.host_s

    def at_least(self, bound_s: float) -> Replayed:
        """The same where the cores of the host allow no shorter iteration than `bound_s`."""
        return replace(self, host_s=max(0.0, bound_s - self.seconds + self.host_s))


def seconds_of(call: Call, link: Link, num_ranks: int) -> float:
    """What a collective takes when all ranks have called it."""
    if call.kind is Collective.ALL_TO_ALL:
        return link.all_to_all_s(num_ranks, call.num_bytes, on_host=call.on_host)
    if call.kind in (Collective.ALL_GATHER, Collective.BROADCAST):
        return link.all_gather_s(num_ranks, call.num_bytes, on_host=call.on_host)
    if call.kind is Collective.GATHER_OBJECTS:  # torch gathers the sizes, then the objects
        return sum(link.all_gather_s(num_ranks, size, on_host=True) for size in (8, call.num_bytes))
    return link.all_reduce_s(num_ranks, call.num_bytes, on_host=call.on_host)


def replay(
    iterations: Sequence[IterationTrace],
    link: Link,
    num_ranks: int,
    *,
    spread: float | None = None,
    slowness: Sequence[float] | None = None,
    seed: int = 0,
) -> Replayed:
    """An iteration of `num_ranks` ranks that are joined by `link`. `spread`: by which share ranks differ, in place of
    what the recorded iterations say. `slowness`: the time of each rank for its work, relative to the trace."""
    work_s = [iteration.work_s for iteration in iterations]
    if num_ranks == 1:
        return Replayed(float(np.mean(work_s)), 0.0, 0.0, 0.0)
    common_s, sigma = common_and_spread(work_s)
    sigma = sigma if spread is None else spread
    chosen = np.linspace(0, len(iterations) - 1, min(len(iterations), MOST)).round().astype(np.int64)
    level = float(np.mean(work_s) / common_s[chosen].mean())
    rng = np.random.Generator(np.random.Philox(seed))
    each = np.ones(num_ranks) if slowness is None else np.asarray(slowness, dtype=np.float64)
    simulation = _Simulation(link, num_ranks)
    repeats = -(-LEAST // len(chosen))
    for index in np.tile(chosen, repeats):
        base = iterations[int(index)]
        factor = level * common_s[index] / max(base.work_s, 1e-12) * (1 + sigma * rng.standard_normal(num_ranks))
        simulation.iteration(base, each * np.maximum(factor, 0.0))
    return simulation.result(repeats * len(chosen))


def common_and_spread(work_s: Sequence[float]) -> tuple[NDArray[np.float64], float]:
    """What iterations take on every rank, and by which share a rank differs from that (standard deviation).

    What is common is the median of an iteration and its neighbours, or the iteration itself where it differs from that
    by more than `OUTLIER` standard deviations.
    """
    times_s = np.asarray(work_s)
    around = [times_s[max(0, i - NEIGHBOURS) : i + NEIGHBOURS + 1] for i in range(len(times_s))]
    medians = np.array([np.median(part) for part in around])
    deviations = times_s / np.maximum(medians, 1e-12) - 1
    sigma = SIGMA_OF_MAD * float(np.median(np.abs(deviations)))
    return np.where(np.abs(deviations) > OUTLIER * sigma, times_s, medians), sigma


class _Simulation:
    """The clocks of all ranks and of the link."""

    def __init__(self, link: Link, num_ranks: int) -> None:
        self.link, self.num_ranks = link, num_ranks
        self.clock: NDArray[np.float64] = np.zeros(num_ranks)
        self.work, self.skew, self.exposed, self.busy = np.zeros(num_ranks), 0.0, 0.0, 0.0
        self.free = {True: 0.0, False: 0.0}
        """When the channel of the host and that of the device are free; there may be only one."""

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
        on_host = call.on_host and not self.link.is_one_channel
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
    """What makes an iteration as long as it is, in words: the cores of the host where they are too few, else the
    largest part."""
    if replayed.host_s > LEAST_HOST_SHARE * replayed.seconds:
        return HOST_CORES
    total = sum(phases_s.values()) or math.inf
    scaled = {name: replayed.work_s * seconds / total for name, seconds in phases_s.items()}
    parts = {
        "data": scaled.get("data", 0.0),
        "communication": replayed.exposed_s,
        "the slowest rank": replayed.skew_s,
        "time outside the timed phases": scaled.get("other", 0.0),
        **{name: seconds for name, seconds in scaled.items() if name not in ("data", "communication", "other")},
    }
    return max(parts, key=lambda name: parts[name])
