"""What `ranks forecast` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ranks.cli.on_runs.columns import aligned
from ranks.cli.units import rate, short_s, size
from ranks.hardware.forecast.job import Forecast, Interval, Speedup
from ranks.hardware.forecast.ledger import Comparison
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.rental import Rental, save_interval_s
from ranks.hardware.links.curve import Link
from ranks.progress import duration


def table(forecasts: Sequence[Forecast], unit: str, reached: Sequence[tuple[str, Sequence[Interval]]] = ()) -> str:
    """One line for each number of ranks. `unit`: GPUs or ranks. `reached`: more columns of iterations, with their
    heads."""
    kind = next(iter(forecasts[0].items_per_s), "iterations")
    priced = [f.cost for f in forecasts if f.cost is not None]
    head = [unit, "iteration (90 %)", f"{kind}/s", "efficiency", "whole run (90 %)", "memory"]
    head += ["cost (90 %)", f"per million {kind}"] if priced else []
    lines = [[*head, *(name for name, _ in reached), "limited by"]]
    for index, f in enumerate(forecasts):
        speed = f.items_per_s.get(kind, 1 / f.iteration_s.middle)
        cells = [
            str(f.num_ranks),
            with_interval(f.iteration_s, short_s),
            rate(speed),
            f"{f.efficiency(forecasts[0]):.0%}",
            with_interval(f.run_s, clock),
            size(f.peak_bytes),
        ]
        if f.cost is not None:
            million = f.cost.middle / (speed * f.run_s.middle) * 1e6
            cells += [with_interval(f.cost, "{:,.2f}".format), f"{million:,.3g}"]
        cells += [with_interval(column[index], "{:,.0f}".format) for _, column in reached]
        lines.append([*cells, f.limited_by])
    return aligned(lines, left=[len(lines[0]) - 1])


def sources(profile: Profile, link: Link, rental: Rental, price_source: str, faster: Speedup) -> Iterator[str]:
    """Where each input comes from."""
    recorded = sum(len(trace.iterations) for trace in profile.traces.values())
    yield f"profile  measured on {profile.device}, {profile.recorded} UTC, {recorded} iterations"
    if not profile.is_gpu:
        threads = ", ".join(f"{threads} with {n}" for n, threads in profile.threads.items())
        yield f"threads  of a rank: {threads} ranks"
    if faster.reason:
        yield f"GPU      guess: {faster.reason}"
    yield f"link     {link.source}, right within {link.uncertainty:.0%}"
    if rental.gpu_hour is None:
        yield "price    unknown: give --price, what one GPU costs an hour"
        return
    paid = f"set-up {clock(rental.setup_s)}, transfer {clock(rental.transfer_s)}, billed by {clock(rental.unit_s)}"
    yield f"price    {rental.gpu_hour:,.2f} for one GPU an hour ({price_source}); {paid}"


def advice(chosen: Forecast | None, save_s: float, failure_s: float, unit: str) -> Iterator[str]:
    """What to rent, and how often to save."""
    if chosen is None:
        yield "none of these keeps to the deadline or the budget in nine cases of ten"
    else:
        cost = f", {chosen.cost.middle:,.2f}" if chosen.cost is not None else ""
        of = unit if chosen.num_ranks > 1 else unit.removesuffix("s")
        yield f"best: {chosen.num_ranks} {of}, {clock(chosen.run_s.middle)}{cost}"
    every = clock(save_interval_s(save_s, failure_s))
    yield f"a save takes {short_s(save_s)}: with a failure every {clock(failure_s)}, save every {every} (--save-every)"


def as_json(profile: Profile, link: Link, forecasts: Sequence[Forecast], chosen: Forecast | None) -> dict[str, Any]:
    """All numbers."""
    return {
        "workload": profile.workload,
        "iterations": profile.iterations,
        "device": profile.device,
        "recorded": profile.recorded,
        "link": {"name": link.name, "source": link.source, "uncertainty": link.uncertainty},
        "forecasts": [asdict(f) for f in forecasts],
        "best": chosen.num_ranks if chosen else None,
    }


def compared(comparisons: Sequence[Comparison]) -> str:
    """Forecasts beside facts."""
    lines = [["run", "ranks", "iteration (90 %)", "fact", "error", "whole run (90 %)", "fact"]]
    for c in comparisons:
        lines.append(
            [
                c.run,
                str(c.num_ranks),
                with_interval(c.forecast_s, short_s),
                short_s(c.fact_s),
                f"{c.error:+.1%}" + ("" if c.is_within else ", outside"),
                with_interval(c.forecast_run_s, clock),
                "-" if c.fact_run_s is None else clock(c.fact_run_s),
            ]
        )
    return aligned(lines, left=[0])


def with_interval(interval: Interval, shown: Callable[[float], str]) -> str:
    """The value, and its interval in brackets."""
    return f"{shown(interval.middle)} ({shown(interval.low)} to {shown(interval.high)})"


def clock(seconds: float) -> str:
    """4000 -> '1 h 07 min'; whole minutes and seconds without zeros behind them."""
    return duration(round(seconds)).replace(" 00 s", "").replace(" 00 min", "").replace(".0 s", " s")
