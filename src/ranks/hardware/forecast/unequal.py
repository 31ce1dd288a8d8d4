"""Ranks of unequal speed: cards of several kinds in one run, or unequal shares of equal ones.

A trace is that of a rank with an equal share of the items on the recorded device. Rank r carries the share x of the
items, on a device that is v times as fast. The time of its work, relative to the trace of n ranks, is

    w(x) / w(1/n) / v    with  w(x) = fixed + slope * x

The line goes through the work of one rank alone (x = 1) and of one of n (x = 1/n). The memory of a rank is such a line
too. A collective begins when the slowest rank has called it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ranks.engine.sharding.assignment import ShardAssignment
from ranks.hardware.forecast.host import UNCERTAINTY, host_bound_s
from ranks.hardware.forecast.job import Forecast, ForecastInterval, Speedup, iteration_interval, whole_run
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.rental import Rental
from ranks.hardware.forecast.replay import HOST_CORES, Replayed, limiting_term, replay
from ranks.hardware.links.curve import Link
from ranks.hardware.scale.shares import MOST, propose_shares

OTHER_SHARE = 0.05
"""A guess: the line is right within so much for other shares than equal ones, in nine cases of ten."""


@dataclass(frozen=True)
class RankDevice:
    """What one rank computes on."""

    name: str
    faster: Speedup
    """Than the recorded device."""
    usable_bytes: float | None
    """Of its memory; None: unknown."""


@dataclass(frozen=True)
class RankForecast:
    """One rank of a run with unequal ranks."""

    device: str
    num_shards: int
    work_s: float
    """In an iteration."""
    waits_s: float
    """For slower ranks and for the link."""
    peak_bytes: int
    usable_bytes: float | None

    @property
    def fits(self) -> bool:
        """Whether the device has the memory, as far as that is known."""
        return self.usable_bytes is None or self.peak_bytes <= self.usable_bytes


@dataclass(frozen=True)
class UnequalForecast:
    """Of one division of the shards."""

    whole: Forecast
    ranks: tuple[RankForecast, ...]

    @property
    def fits(self) -> bool:
        return all(rank.fits for rank in self.ranks)

    @property
    def slowest(self) -> int:
        """The rank whose work takes longest."""
        return max(range(len(self.ranks)), key=lambda rank: self.ranks[rank].work_s)


@dataclass(frozen=True)
class LineByShare:
    """What a rank needs by the share of all items that it carries."""

    fixed: float
    slope: float

    @classmethod
    def through(cls, alone: float, of_several: float, num_ranks: int) -> LineByShare:
        """From the values of one rank alone and of one of `num_ranks`. It meets the second one exactly; noise makes
        neither part negative."""
        slope = (alone - of_several) / (1 - 1 / num_ranks)
        slope = min(max(slope, 0.0), of_several * num_ranks)
        return cls(of_several - slope / num_ranks, slope)

    def at(self, share: float) -> float:
        return self.fixed + self.slope * share


def work_line(profile: Profile, num_ranks: int) -> LineByShare:
    """Seconds of an iteration's work. The profile must have the traces of 1 and of `num_ranks` ranks."""
    return LineByShare.through(profile.traces[1].work_s, profile.traces[num_ranks].work_s, num_ranks)


def memory_line(profile: Profile, num_ranks: int) -> LineByShare:
    """Bytes at the peak."""
    return LineByShare.through(profile.traces[1].peak_bytes, profile.traces[num_ranks].peak_bytes, num_ranks)


def most_shards(line: LineByShare, usable_bytes: float | None, num_shards: int) -> int:
    """How many of all shards a device's memory holds; 0 where not even one fits."""
    if usable_bytes is None or line.at(1.0) <= usable_bytes:
        return num_shards
    if line.slope <= 0:
        return 0
    return max(0, math.floor((usable_bytes - line.fixed) / line.slope * num_shards))


def shares_by_speed(profile: Profile, devices: Sequence[RankDevice]) -> tuple[int, ...] | None:
    """Shares in proportion to the speed of the devices, within the memory of each, by the rule of `ranks scale --shares
    auto`. None where no shares fit."""
    num_shards, memory = profile.num_shards, memory_line(profile, len(devices))
    limits = [most_shards(memory, device.usable_bytes, num_shards) for device in devices]
    speeds = [device.faster.middle for device in devices]
    return propose_shares(speeds, limits, num_shards, min(MOST, num_shards))


def forecast_unequal(
    profile: Profile,
    devices: Sequence[RankDevice],
    shares: tuple[int, ...],
    link: Link,
    rental: Rental,
    *,
    cores: float | None = None,
) -> UnequalForecast:
    """The run on these devices with these shares, assigned as in a run. `cores`: of the host, as for `forecast_run`;
    shares move its work from one rank to another. Raises UserError for shares that a run rejects."""
    num_ranks, num_shards = len(devices), profile.num_shards
    trace = profile.traces[num_ranks]
    assignment = ShardAssignment.make(num_shards, num_ranks, shares)
    counts = [len(assignment.shards_of(rank)) for rank in range(num_ranks)]
    work, memory = work_line(profile, num_ranks), memory_line(profile, num_ranks)
    relative = [work.at(count / num_shards) / work.at(1 / num_ranks) for count in counts]

    def slowness(speeds: Sequence[float]) -> list[float]:
        return [share / speed for share, speed in zip(relative, speeds, strict=True)]

    def replayed_with(speeds: Sequence[float]) -> Replayed:
        return replay(trace.iterations, link, num_ranks, slowness=slowness(speeds))

    middle = slowness([device.faster.middle for device in devices])
    alone = replayed_with([device.faster.middle for device in devices])
    bound_s = host_bound_s(trace.host_cpu_s, num_ranks, cores)
    replayed = alone.at_least(bound_s)
    same = iteration_interval(trace.iterations, link, num_ranks, alone.seconds, slowness=middle)
    iteration_s = _widened(
        same if len(set(counts)) == 1 else _with_other_shares(same),
        replayed_with([device.faster.high for device in devices]).seconds,
        replayed_with([device.faster.low for device in devices]).seconds,
    ).at_least(ForecastInterval.around(bound_s, UNCERTAINTY))
    works = [trace.work_s * each for each in middle]
    ranks = tuple(
        RankForecast(
            device.name,
            count,
            work_s,
            max(0.0, replayed.seconds - work_s),
            round(memory.at(count / num_shards)),
            device.usable_bytes,
        )
        for device, count, work_s in zip(devices, counts, works, strict=True)
    )
    whole = whole_run(
        profile,
        trace,
        assignment,
        rental,
        replayed,
        iteration_s,
        evaluation_s=trace.evaluation_s * max(middle),
        limited_by=limiting_card(replayed, trace.phases_s, ranks, link),
    )
    return UnequalForecast(whole, ranks)


def limiting_card(replayed: Replayed, phases_s: Mapping[str, float], ranks: Sequence[RankForecast], link: Link) -> str:
    """What makes an iteration of the rank with the most work as long as it is, in words that name its device."""
    if (term := limiting_term(replayed, phases_s)) == HOST_CORES:
        return term
    slowest = max(range(len(ranks)), key=lambda rank: ranks[rank].work_s)
    work_s = ranks[slowest].work_s
    rest_s = max(0.0, replayed.seconds - work_s - replayed.exposed_s)
    term = limiting_term(Replayed(work_s, rest_s, replayed.exposed_s, replayed.link_s), phases_s)
    return f"{term}, {link.name}" if term == "communication" else f"{term}, {ranks[slowest].device} (rank {slowest})"


def _with_other_shares(interval: ForecastInterval) -> ForecastInterval:
    """With what the line leaves open, as an independent error."""
    lower, upper = 1 - interval.low / interval.middle, interval.high / interval.middle - 1
    return ForecastInterval(
        interval.middle * (1 - min(0.9, math.hypot(lower, OTHER_SHARE))),
        interval.middle,
        interval.middle * (1 + math.hypot(upper, OTHER_SHARE)),
    )


def _widened(interval: ForecastInterval, fastest_s: float, slowest_s: float) -> ForecastInterval:
    """With the ends of the devices' speeds, all at once: what the iteration takes if each is as fast, or as slow, as
    its data sheet allows."""
    return ForecastInterval(
        interval.low * min(1.0, fastest_s / interval.middle),
        interval.middle,
        interval.high * max(1.0, slowest_s / interval.middle),
    )
