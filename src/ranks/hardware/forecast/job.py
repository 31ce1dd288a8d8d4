"""The forecast of a whole run: time of an iteration, of everything, its cost, and intervals."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ranks.engine.sharding.assignment import ShardAssignment
from ranks.hardware.forecast.host import UNCERTAINTY, host_bound_s
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.rental import Rental
from ranks.hardware.forecast.replay import Replayed, common_and_spread, limiting_term, replay
from ranks.hardware.forecast.shared_cores import EQUAL_CORES, Z90, SharedCores
from ranks.hardware.forecast.trace import IterationTrace, Trace
from ranks.hardware.links.curve import Link

ANOTHER_DAY = 0.05
"""A guess: the same machine is faster or slower on another day by so much, in nine cases of ten."""
MEASURED_ONCE = 0.3
"""A guess of the same kind for start, evaluations and saves, each of which is measured once."""
SAVE_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class ForecastInterval:
    """A value, and between which two it lies in nine cases of ten."""

    low: float
    middle: float
    high: float

    def times(self, factor: float) -> ForecastInterval:
        return ForecastInterval(self.low * factor, self.middle * factor, self.high * factor)

    def plus(self, other: ForecastInterval) -> ForecastInterval:
        """Both at their ends at once."""
        return ForecastInterval(self.low + other.low, self.middle + other.middle, self.high + other.high)

    @classmethod
    def around(cls, middle: float, share: float) -> ForecastInterval:
        """As much below as above."""
        return cls(middle * (1 - share), middle, middle * (1 + share))

    def at_least(self, other: ForecastInterval) -> ForecastInterval:
        """The larger of both, end by end."""
        return ForecastInterval(max(self.low, other.low), max(self.middle, other.middle), max(self.high, other.high))


@dataclass(frozen=True)
class Speedup:
    """How much faster another GPU is than the recorded one, and why."""

    low: float = 1.0
    middle: float = 1.0
    high: float = 1.0
    reason: str = ""


@dataclass(frozen=True)
class Forecast:
    """Of one number of ranks."""

    num_ranks: int
    shards_per_rank: tuple[int, ...]
    replayed: Replayed
    iteration_s: ForecastInterval
    run_s: ForecastInterval
    """The whole command: start, iterations, evaluations, saves."""
    job_s: ForecastInterval
    """From the first paid second to the last one: set-up, upload, the command, download."""
    cost: ForecastInterval | None
    items_per_s: dict[str, float]
    limited_by: str
    peak_bytes: int
    paid_s: float
    start_s: float
    other_s: float
    """Evaluations and saves, for each iteration."""
    weak_efficiency: float | None
    """Speed where each rank carries what one rank alone carries, relative to that rank's. None without its trace."""

    def iterations_in(self, run_s: float) -> ForecastInterval:
        """How many iterations a command of so many seconds makes."""
        left_s = max(0.0, run_s - self.start_s)
        each_s = self.iteration_s.plus(ForecastInterval.around(self.other_s, MEASURED_ONCE))
        return ForecastInterval(left_s / each_s.high, left_s / each_s.middle, left_s / each_s.low)

    def strong_efficiency(self, first: Forecast) -> float:
        """Speed with the same global batch, relative to the one in proportion to the first number of ranks."""
        return first.iteration_s.middle * first.num_ranks / (self.num_ranks * self.iteration_s.middle)


def forecast_run(
    profile: Profile,
    trace: Trace,
    link: Link,
    rental: Rental,
    faster: Speedup = Speedup(),
    *,
    cores: float | None = None,
) -> Forecast:
    """The run of `profile` on `trace.num_ranks` equal ranks that are joined by `link`. `cores`: of the host, which all
    ranks share; None: unknown, so that they limit nothing. Their work is not faster on a faster GPU."""
    shared = profile.shared_cores
    slower = shared.slower_with(trace.num_ranks)
    iterations = [_faster(i, faster.middle / slower) for i in trace.iterations]
    spread = max(shared.spread, common_and_spread([i.work_s for i in iterations])[1])
    alone = replay(iterations, link, trace.num_ranks, spread=spread)
    bound_s = slower * host_bound_s(trace.host_cpu_s, trace.num_ranks, cores)
    replayed = alone.at_least(bound_s)
    of_gpus = iteration_interval(iterations, link, trace.num_ranks, alone.seconds, faster, shared=shared)
    return whole_run(
        profile,
        trace,
        ShardAssignment.make(profile.num_shards, trace.num_ranks),
        rental,
        replayed,
        of_gpus.at_least(ForecastInterval.around(bound_s, UNCERTAINTY)),
        evaluation_s=trace.evaluation_s / faster.middle,
        limited_by=limiting_term(replayed, trace.phases_s),
        weak_efficiency=_weak_efficiency(profile, iterations, link, trace.num_ranks, faster, cores),
    )


def whole_run(
    profile: Profile,
    trace: Trace,
    assignment: ShardAssignment,
    rental: Rental,
    replayed: Replayed,
    iteration_s: ForecastInterval,
    *,
    evaluation_s: float,
    limited_by: str,
    weak_efficiency: float | None = None,
) -> Forecast:
    """The whole command from its iterations. `evaluation_s`: of one evaluation."""
    evaluations = math.ceil(profile.iterations / profile.eval_every) if profile.eval_every else 1
    saves = num_saves(profile.save_every, profile.iterations, replayed.seconds)
    saves += evaluations if trace.saves_with_evaluation else 0
    rest_s = evaluations * evaluation_s + saves * trace.save_s
    run_s = iteration_s.times(profile.iterations).plus(ForecastInterval.around(rest_s + trace.start_s, MEASURED_ONCE))
    costs = [rental.cost(s, trace.num_ranks) for s in (run_s.low, run_s.middle, run_s.high)]
    known = [cost for cost in costs if cost is not None]
    return Forecast(
        trace.num_ranks,
        tuple(len(assignment.shards_of(rank)) for rank in range(trace.num_ranks)),
        replayed,
        iteration_s,
        run_s,
        run_s.plus(ForecastInterval.around(rental.around_s, 0.0)),
        ForecastInterval(*known) if len(known) == 3 else None,
        {kind: number / replayed.seconds for kind, number in trace.items.items()},
        limited_by,
        trace.peak_bytes,
        rental.paid_s(run_s.middle),
        trace.start_s,
        rest_s / profile.iterations,
        weak_efficiency,
    )


def iteration_interval(
    iterations: Sequence[IterationTrace],
    link: Link,
    num_ranks: int,
    seconds: float,
    faster: Speedup = Speedup(),
    slowness: Sequence[float] | None = None,
    shared: SharedCores = EQUAL_CORES,
) -> ForecastInterval:
    """The replayed `seconds` of an iteration with what the recorded iterations, another day, the link and another GPU
    leave open, as independent errors. `slowness`: of each rank, as for `replay`."""
    work = [iteration.work_s for iteration in iterations]
    of_mean = statistics.stdev(work) / math.sqrt(len(work)) / statistics.fmean(work) if len(work) > 1 else 0.2
    deviations = statistics.pstdev(work) / statistics.fmean(work)

    def relative(spread: float, slower: float) -> float:
        other = replay(iterations, link.slower(slower), num_ranks, spread=spread, slowness=slowness)
        return abs(other.seconds / seconds - 1)

    day = max(ANOTHER_DAY, shared.uncertainty)
    own = max(shared.spread, common_and_spread(work)[1])
    lower = math.hypot(Z90 * of_mean, day, relative(own, 1 - link.uncertainty))
    # where longer iterations are longer on one rank only, the others wait for it
    alone = relative(min(0.5, max(deviations, own)), 1.0) if num_ranks > 1 else 0.0
    upper = math.hypot(Z90 * of_mean, day, relative(own, 1 + link.uncertainty), alone)
    return ForecastInterval(
        seconds * (1 - min(0.9, lower)) * min(1.0, faster.middle / faster.high),
        seconds,
        seconds * (1 + upper) * max(1.0, faster.middle / faster.low),
    )


def _faster(iteration: IterationTrace, factor: float) -> IterationTrace:
    """The same iteration on a device that is `factor` times as fast."""
    if factor == 1:
        return iteration
    calls = tuple(replace(c, start_s=c.start_s / factor, wait_s=c.wait_s / factor) for c in iteration.calls)
    return IterationTrace(iteration.work_s / factor, calls)


def _weak_efficiency(
    profile: Profile,
    iterations: Sequence[IterationTrace],
    link: Link,
    num_ranks: int,
    faster: Speedup,
    cores: float | None,
) -> float | None:
    """The collectives of `num_ranks` with the work of one rank alone, also that on the host."""
    if 1 not in profile.traces:
        return None
    alone_s = profile.traces[1].work_s / faster.middle
    work_s = sum(iteration.work_s for iteration in iterations) / len(iterations)
    slower = profile.shared_cores.slower_with(num_ranks)
    whole = [_faster(iteration, work_s / (slower * alone_s)) for iteration in iterations]
    bound_s = slower * host_bound_s(profile.traces[1].host_cpu_s, num_ranks, cores)
    return max(alone_s, host_bound_s(profile.traces[1].host_cpu_s, 1, cores)) / max(
        replay(whole, link, num_ranks).seconds, bound_s
    )


def num_saves(save_every: str, iterations: int, iteration_s: float) -> int:
    """Checkpoints of a run, the one at the end included. `save_every`: iterations, or a time such as 5m."""
    match = re.fullmatch(r"([0-9.]+)([smh])?", save_every.strip())
    if match is None:
        return 1
    number, unit = float(match[1]), match[2]
    between = number if unit is None else max(1.0, number * SAVE_UNITS_S[unit] / max(iteration_s, 1e-9))
    return math.ceil(iterations / max(between, 1.0))


def best(forecasts: Sequence[Forecast], *, deadline_s: float | None, budget: float | None) -> Forecast | None:
    """With a deadline the cheapest job that ends before it; with a budget the fastest that it pays for; without both
    the cheapest, or without a price the one with the fewest GPU-hours; of equal ones the fastest. None where nothing
    does."""
    allowed = [
        f
        for f in forecasts
        if (deadline_s is None or f.job_s.high <= deadline_s)
        and (budget is None or (f.cost is not None and f.cost.high <= budget))
    ]
    if budget is not None and deadline_s is None:
        return min(allowed, key=lambda f: f.job_s.middle, default=None)

    def paid(f: Forecast) -> float:
        return f.cost.middle if f.cost is not None else f.paid_s * f.num_ranks

    return min(allowed, key=lambda f: (paid(f), f.job_s.middle), default=None)
