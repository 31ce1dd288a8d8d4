"""What `ranks forecast` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from ranks.cli.columns import aligned
from ranks.cli.units import short_s, size
from ranks.hardware.forecast.job import Forecast, ForecastInterval, Speedup
from ranks.hardware.forecast.ledger import ForecastAndFact
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.rental import Rental, save_interval_s
from ranks.hardware.forecast.shared_cores import SharedCores
from ranks.hardware.links.curve import Link
from ranks.hardware.units import rate
from ranks.progress import duration

T = TypeVar("T")


def table(
    forecasts: Sequence[Forecast],
    iterations: int,
    unit: str,
    reached: Sequence[tuple[str, Sequence[ForecastInterval]]] = (),
) -> str:
    """One line for each number of ranks. `iterations`: of the run; `unit`: GPUs or ranks; `reached`: more columns of
    iterations, with their heads."""
    kind = next(iter(forecasts[0].items_per_s), "iterations")
    priced = [f.cost for f in forecasts if f.cost is not None]
    head = [unit, "iteration", f"{kind}/s", "strong", "weak", "whole job (90 %)", "memory"]
    head += ["cost (90 %)", f"per million {kind}"] if priced else []
    lines = [[*head, *(name for name, _ in reached), "limited by"]]
    for index, f in enumerate(forecasts):
        speed = f.items_per_s.get(kind, 1 / f.iteration_s.middle)
        cells = [
            str(f.num_ranks),
            short_s(f.iteration_s.middle),
            rate(speed),
            f"{f.strong_efficiency(forecasts[0]):.0%}",
            "-" if f.weak_efficiency is None else f"{f.weak_efficiency:.0%}",
            with_interval(f.job_s, clock),
            size(f.peak_bytes),
        ]
        if f.cost is not None:
            million = f.cost.middle / (speed * f.iteration_s.middle * iterations) * 1e6
            cells += [with_interval(f.cost, "{:,.2f}".format), f"{million:,.3g}"]
        cells += [with_interval(column[index], "{:,.0f}".format) for _, column in reached]
        lines.append([*cells, f.limited_by])
    return aligned(lines, left=[len(lines[0]) - 1])


def sources(
    profile: Profile,
    links: Mapping[int, Link],
    rentals: Mapping[int, Rental],
    faster: Speedup,
    cores: Mapping[int, int | None],
) -> Iterator[str]:
    """Where each input comes from. `cores`: of the host, by the number of ranks."""
    recorded = sum(len(trace.iterations) for trace in profile.traces.values())
    yield f"profile  measured on {profile.device}, {profile.recorded} UTC, {recorded} iterations"
    if not profile.is_gpu:
        threads = ", ".join(f"{threads} with {n}" for n, threads in profile.threads.items())
        yield f"threads  of a rank: {threads} ranks"
    if faster.reason:
        yield f"GPU      guess: {faster.reason}"
    if not profile.is_gpu:
        yield f"cores    {cores_in_words(profile.shared_cores)}"
    for known, counts in _grouped(cores):
        yield f"host     {_of(counts)}{host_in_words(profile, counts or list(cores), known)}"
    for link, counts in _grouped({n: link for n, link in links.items() if n > 1}):
        yield f"link     {_of(counts)}{link.source}, right within {link.uncertainty:.0%}"
    for rental, counts in _grouped(rentals):
        if rental.gpu_hour is None:
            yield f"price    {_of(counts)}unknown: give --price, what one GPU costs an hour"
        else:
            yield f"price    {_of(counts)}{rental.gpu_hour:,.2f} for one GPU an hour ({rental.source})"
    yield from job_in_words(next(iter(rentals.values())))


def job_in_words(rental: Rental) -> Iterator[str]:
    """What belongs to the job next to the run, and how it is paid."""
    billed = "" if rental.gpu_hour is None else f"; billed by {clock(rental.unit_s)}"
    if rental.around_s or billed:
        yield f"job      set-up {clock(rental.setup_s)}, transfer {clock(rental.transfer_s)}, and the run{billed}"


def cores_in_words(shared: SharedCores) -> str:
    """What the cores of a CPU machine do to its ranks."""
    together = "two at once were not measured"
    if shared.spread:
        together = f"two at once need {shared.slower:.2f} x the time of one, and differ by {shared.spread:.0%}"
    return f"measured: equal work takes {shared.drift:.0%} more or less from one half second to another; {together}"


def host_in_words(profile: Profile, counts: Sequence[int], cores: int | None) -> str:
    """How many CPU cores the ranks keep busy, and how many there are."""
    used = {n: trace.host_cpu_s / trace.work_s for n in counts if (trace := profile.traces[n]).host_cpu_s is not None}
    needed = [f"{n * each:.1f}" + (f" with {n}" if len(counts) > 1 else "") for n, each in used.items()]
    busy = f"busy CPU cores: {', '.join(needed)}" if needed else "how many CPU cores ranks need is unknown"
    has = "those of the run's machine are unknown: give --cores" if cores is None else f"the machine has {cores}"
    return f"{busy}; {has}"


def _grouped(values: Mapping[int, T]) -> Iterator[tuple[T, list[int]]]:
    """Equal values once, with their numbers of ranks; without them where all are equal."""
    for value in dict.fromkeys(values.values()):
        counts = [n for n, other in values.items() if other == value]
        yield value, counts if len(counts) < len(values) else []


def _of(counts: Sequence[int]) -> str:
    return f"{', '.join(map(str, counts))}: " if counts else ""


def advice(
    chosen: Forecast | None, too_small: Sequence[str], save_s: float, failure_s: float, unit: str
) -> Iterator[str]:
    """How to read the table, what to rent, and how often to save."""
    yield "strong, weak: efficiency with the same global batch, and with the same batch on each"
    yield from too_small
    if chosen is None:
        yield "none of these keeps to the deadline or the budget in nine cases of ten"
    else:
        cost = f", {chosen.cost.middle:,.2f}" if chosen.cost is not None else ""
        of = unit if chosen.num_ranks > 1 else unit.removesuffix("s")
        yield f"best: {chosen.num_ranks} {of}, {clock(chosen.job_s.middle)}{cost}"
    yield when_to_save(save_s, failure_s)


def when_to_save(save_s: float, failure_s: float) -> str:
    """The interval between saves, for failures that come every `failure_s` seconds on average."""
    every = clock(save_interval_s(save_s, failure_s))
    return f"a save takes {short_s(save_s)}: with a failure every {clock(failure_s)}, save every {every} (--save-every)"


def as_json(
    profile: Profile,
    links: Mapping[int, Link],
    rentals: Mapping[int, Rental],
    cores: Mapping[int, int | None],
    forecasts: Sequence[Forecast],
    chosen: Forecast | None,
) -> dict[str, Any]:
    """All numbers."""
    return {
        "workload": profile.workload,
        "iterations": profile.iterations,
        "device": profile.device,
        "recorded": profile.recorded,
        "forecasts": [
            {
                **asdict(f),
                "link": None if f.num_ranks == 1 else _about(links[f.num_ranks]),
                "price": asdict(rentals[f.num_ranks]),
                "host": {"cpu_s": profile.traces[f.num_ranks].host_cpu_s, "cores": cores[f.num_ranks]},
            }
            for f in forecasts
        ],
        "best": chosen.num_ranks if chosen else None,
    }


def _about(link: Link) -> dict[str, Any]:
    return {"name": link.name, "source": link.source, "uncertainty": link.uncertainty}


def fact_rows(c: ForecastAndFact) -> Iterator[tuple[str, ...]]:
    """A forecast and its fact as rows, for a report."""
    yield "time of", "forecast (90 %)", "fact", "error"
    yield "an iteration", with_interval(c.forecast_s, short_s), short_s(c.fact_s), _error(c)
    if c.fact_run_s is not None:
        error = f"{c.forecast_run_s.middle / c.fact_run_s - 1:+.1%}"
        yield "the whole run", with_interval(c.forecast_run_s, clock), clock(c.fact_run_s), error
    if c.guessed:
        yield f"forecast for {c.guessed}", "", "", ""


def _error(c: ForecastAndFact) -> str:
    return f"{c.error:+.1%}" + ("" if c.is_within else ", outside")


def compared(comparisons: Sequence[ForecastAndFact]) -> str:
    """Forecasts and facts. A last column names the cards of those that were recorded on another one."""
    guessed = ["forecast for"] if any(c.guessed for c in comparisons) else []
    lines = [["run", "ranks", "iteration (90 %)", "fact", "error", "whole run (90 %)", "fact", *guessed]]
    for c in comparisons:
        lines.append(
            [
                c.run,
                str(c.num_ranks),
                with_interval(c.forecast_s, short_s),
                short_s(c.fact_s),
                _error(c),
                with_interval(c.forecast_run_s, clock),
                "-" if c.fact_run_s is None else clock(c.fact_run_s),
                *([c.guessed or "its own device"] if guessed else []),
            ]
        )
    return aligned(lines, left=[0, len(lines[0]) - 1] if guessed else [0])


def with_interval(interval: ForecastInterval, shown: Callable[[float], str]) -> str:
    """The value, and its interval in brackets."""
    return f"{shown(interval.middle)} ({shown(interval.low)} to {shown(interval.high)})"


def clock(seconds: float) -> str:
    """4000 -> '1 h 07 min'; whole minutes and seconds without zeros behind them."""
    return duration(round(seconds)).replace(" 00 s", "").replace(" 00 min", "").replace(".0 s", " s")
