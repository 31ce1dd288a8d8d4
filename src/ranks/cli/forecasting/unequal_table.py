"""What `ranks forecast` prints for ranks that are not equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ranks.cli.columns import aligned
from ranks.cli.forecasting.table import clock, host_in_words, job_in_words, when_to_save, with_interval
from ranks.cli.units import short_s, size
from ranks.hardware.forecast.job import Forecast, ForecastInterval
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.rental import Rental
from ranks.hardware.forecast.unequal import RankDevice, UnequalForecast
from ranks.hardware.links.curve import Link
from ranks.hardware.units import rate


@dataclass(frozen=True)
class Candidate:
    """One way to run the workload."""

    name: str
    forecast: Forecast
    rental: Rental
    fits: bool
    """Whether each card has the memory."""


def row_table(rows: Sequence[Candidate], reached: Sequence[tuple[str, Sequence[ForecastInterval]]]) -> str:
    """One line for each way. `reached`: more columns of iterations, with their heads."""
    kind = next(iter(rows[0].forecast.items_per_s), "iterations")
    with_cost = any(row.forecast.cost is not None for row in rows)
    head = ["", "iteration (90 %)", f"{kind}/s", "whole job (90 %)", *(["cost (90 %)"] if with_cost else [])]
    lines = [[*head, *(name for name, _ in reached), "limited by"]]
    for index, row in enumerate(rows):
        f = row.forecast
        speed = f.items_per_s.get(kind, 1 / f.iteration_s.middle)
        cells = [row.name, with_interval(f.iteration_s, short_s), rate(speed), with_interval(f.job_s, clock)]
        if with_cost:
            cells.append("unknown" if f.cost is None else with_interval(f.cost, "{:,.2f}".format))
        cells += [with_interval(column[index], "{:,.0f}".format) for _, column in reached]
        lines.append([*cells, f.limited_by if row.fits else "memory: it does not fit"])
    return aligned(lines, left=[0, len(lines[0]) - 1])


def rank_table(divided: UnequalForecast) -> str:
    """One line for each rank."""
    lines = [["rank", "device", "shards", "works", "waits", "memory", "of"]]
    for number, rank in enumerate(divided.ranks):
        of = "unknown" if rank.usable_bytes is None else size(round(rank.usable_bytes))
        cells = [str(rank.num_shards), short_s(rank.work_s), short_s(rank.waits_s), size(rank.peak_bytes), of]
        lines.append([str(number), rank.device, *cells])
    return aligned(lines, left=[1])


def sources(
    profile: Profile,
    devices: Sequence[RankDevice],
    link: Link,
    rental: Rental,
    shares: Sequence[int],
    cores: int | None,
    *,
    given: Sequence[int] | None,
) -> Iterator[str]:
    """Where each input comes from."""
    recorded = sum(len(trace.iterations) for trace in profile.traces.values())
    yield f"profile  measured on {profile.device}, {profile.recorded} UTC, {recorded} iterations, alone and as one"
    yield f"         of {len(devices)} with an equal share; other shares are on the line through both"
    for device in dict.fromkeys(devices):
        if device.faster.reason:
            faster = device.faster
            guess = f"{faster.middle:.2f} ({faster.low:.2f} to {faster.high:.2f}) times as fast"
            yield f"GPU      guess: {guess}: {faster.reason}"
    yield f"host     {host_in_words(profile, [len(devices)], cores)}"
    yield f"link     {link.source}, right within {link.uncertainty:.0%}"
    why = "given by --shares" if given is not None else "in proportion to speed, within the memory of each card"
    yield f"shares   {','.join(map(str, shares))}, {why}"
    if rental.gpu_hour is None:
        yield f"price    {rental.source or 'unknown'}: give --price, what one GPU costs an hour (the mean of all cards)"
    else:
        total = rental.gpu_hour * len(devices)
        yield f"price    {total:,.2f} for all {len(devices)} cards an hour ({rental.source})"
    yield from job_in_words(rental)


def advice_of_rows(
    rows: Sequence[Candidate],
    divided: UnequalForecast,
    equal: UnequalForecast,
    chosen: Forecast | None,
    save_s: float,
    failure_s: float,
    unit: str,
) -> Iterator[str]:
    """What the slow card costs, what to rent, and how often to save."""
    yield from too_small(divided)
    if equal.whole.shards_per_rank != divided.whole.shards_per_rank:
        yield cost_of_slow_card(divided, equal)
    if chosen is None:
        yield "none of these fits and keeps to the deadline or the budget in nine cases of ten"
    else:
        row = next(row for row in rows if row.forecast is chosen)
        cost = f", {chosen.cost.middle:,.2f}" if chosen.cost is not None else ""
        yield f"best: {row.name}, {clock(chosen.job_s.middle)}{cost}"
    flag = "--ranks" if unit == "ranks" else "--gpus"
    shares = rows[0].name.removeprefix("shares ")
    run = f"{flag} {len(divided.ranks)} --shares"
    yield f"there: ranks train ... {run} {shares}; better shares are measured by ranks scale ... {run} auto"
    yield when_to_save(save_s, failure_s)


def too_small(divided: UnequalForecast) -> Iterator[str]:
    """A sentence about each rank that does not fit."""
    for number, rank in enumerate(divided.ranks):
        if not rank.fits and rank.usable_bytes is not None:
            needs, has = rank.peak_bytes / 1e9, rank.usable_bytes / 1e9
            yield f"rank {number} needs {needs:.1f} GB, and {rank.device} can give it {has:.1f} GB"


def cost_of_slow_card(divided: UnequalForecast, equal: UnequalForecast) -> str:
    """What equal shares lose, in words."""
    waiting, slowest = max(equal.ranks, key=lambda rank: rank.waits_s), equal.ranks[equal.slowest]
    equal_s, divided_s = equal.whole.iteration_s.middle, divided.whole.iteration_s.middle
    waits = f"{waiting.device} waits {short_s(waiting.waits_s)} of {short_s(equal_s)}"
    change = divided_s / equal_s - 1
    less = f"{abs(change):.0%} {'less' if change <= 0 else 'more'}"
    return f"equal shares: {waits} for {slowest.device} and the link; with the shares above an iteration takes {less}"


def as_json(
    profile: Profile,
    devices: Sequence[RankDevice],
    shares: Sequence[int],
    link: Link,
    rows: Sequence[Candidate],
    divided: UnequalForecast,
    equal: UnequalForecast,
    chosen: Forecast | None,
) -> dict[str, Any]:
    """All numbers."""
    return {
        "workload": profile.workload,
        "iterations": profile.iterations,
        "device": profile.device,
        "recorded": profile.recorded,
        "cards": [asdict(device) for device in devices],
        "shares": list(shares),
        "link": {"name": link.name, "source": link.source, "uncertainty": link.uncertainty},
        "forecasts": [
            {"name": row.name, "fits": row.fits, **asdict(row.forecast), "price": asdict(row.rental)} for row in rows
        ],
        "ranks": [asdict(rank) | {"fits": rank.fits} for rank in divided.ranks],
        "ranks_with_equal_shares": [asdict(rank) | {"fits": rank.fits} for rank in equal.ranks],
        "best": next((row.name for row in rows if row.forecast is chosen), None),
    }
