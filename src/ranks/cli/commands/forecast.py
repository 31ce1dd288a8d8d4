"""`ranks forecast WORKLOAD`: what a run will take and cost on 1, 2, 4, ... GPUs, before they are rented."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ranks.cli.flags.counts import numbers_of_ranks
from ranks.cli.flags.parse import Positional, parse
from ranks.cli.flags.settings import resolve
from ranks.cli.forecasting.measure import measure_profile, probe_link, read_link
from ranks.cli.forecasting.table import advice, as_json, compared, sources, table
from ranks.engine.config import seconds
from ranks.engine.runs.find_run import run_folders
from ranks.errors import UserError
from ranks.hardware.catalogue.gpus import find
from ranks.hardware.forecast.job import Forecast, Interval, Speedup, best, forecast_run
from ranks.hardware.forecast.ledger import Ledger
from ranks.hardware.forecast.other_gpu import speedup
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.rental import Rental
from ranks.hardware.links.curve import Link
from ranks.launch.gpus import find_gpus

PROG = "ranks forecast"


@dataclass(frozen=True)
class ForecastFlags:
    """Forecast the time and the cost of a run on several numbers of GPUs, from a short profile of one.

    One rank runs the workload as if there were others, which takes about 20 s for each number of GPUs. The time of
    collectives is measured with two ranks, or taken from the catalogue. Nothing is measured at the number of GPUs that
    is forecast."""

    workload: Positional[str]
    """Its name, or the path of your own file."""
    gpus: tuple[int, ...] | None = None
    """Numbers of GPUs, for example 1,2,4,8."""
    ranks: tuple[int, ...] | None = None
    """Numbers of ranks on CPU cores, in place of --gpus."""
    train: str = ""
    """Flags of ranks train for the run, in one string: --train="--preset small"."""
    on: str | None = None
    """Another GPU than that of the profile, for example h200."""
    link: str | None = None
    """What connects the ranks: a file of a measured link, or the rate of a network, for example 25gbit. By default it
    is measured here with two ranks, or taken from the catalogue where there is one GPU."""
    price: float | None = None
    """What one GPU costs an hour."""
    prices: Path | None = None
    """A CSV file of prices, with the columns of SkyPilot's catalogues."""
    watts: float | None = None
    """Of one GPU with its share of the machine, with --kwh, for a machine of your own."""
    kwh: float | None = None
    """Price of a kilowatt-hour."""
    iterations: int | None = None
    """Of the run; by default as its settings say."""
    hours: float | None = None
    """Print how many iterations a run makes in so many hours."""
    deadline: str | None = None
    """The run must end within this time: 90m, 8h. The cheapest number of GPUs is named."""
    budget: float | None = None
    """The run may cost so much: print how many iterations that pays for, and name the fastest number of GPUs that
    finishes the run."""
    setup: str = "5m"
    """Paid time before the command starts: boot, installation."""
    transfer: str = "0s"
    """Paid time for data up and results down."""
    billing: str = "1m"
    """Started units of this time are paid."""
    failure_every: str = "24h"
    """Mean time between failures of a machine, for the interval of saves (Young and Daly)."""
    profile: Path | None = None
    """Use a profile that --save-profile has written, for example on a rented GPU. Nothing is run."""
    save_profile: Path | None = None
    """Write the profile to a file."""
    profile_seconds: float = 10.0
    """How long iterations are recorded for each number of ranks; at least four of them are."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders. The forecast is noted there for `ranks forecast --ledger`."""
    json: bool = False
    """Print JSON in place of a table."""


@dataclass(frozen=True)
class LedgerFlags:
    """Compare forecasts with the runs that followed them."""

    ledger: bool
    """Print the comparison."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""


def forecast(argv: Sequence[str]) -> int:
    """Profile the workload, measure the link, and print the forecast of each number of ranks."""
    if "--ledger" in argv:
        return ledger(parse(LedgerFlags, argv, prog=PROG))
    flags = parse(ForecastFlags, argv, prog=PROG)
    counts, unit = numbers_of_ranks(PROG, flags.gpus, flags.ranks)
    rental, price_source = rental_of(flags)
    deadline_s = None if flags.deadline is None else seconds(flags.deadline, "--deadline")
    failure_s = seconds(flags.failure_every, "--failure-every")
    profile = with_iterations(profile_of(flags, counts), flags)
    faster = speedup_of(flags, profile)
    link = link_of(flags, profile)
    forecasts = [forecast_run(profile, profile.traces[n], link, rental, faster) for n in counts]
    chosen = best(forecasts, deadline_s=deadline_s, budget=flags.budget)
    Ledger(flags.runs_dir).add(profile, forecasts)
    if flags.json:
        print(json.dumps(as_json(profile, link, forecasts, chosen), indent=2))
        return 0
    print(f"forecast: {profile.workload}, {profile.iterations:,} iterations")
    print("\n".join(f"  {line}" for line in sources(profile, link, rental, price_source, faster)))
    print(f"\n{table(forecasts, unit, list(reached(flags, forecasts, rental)))}\n")
    save_s = min(trace.save_s for trace in profile.traces.values())
    print("\n".join(advice(chosen, save_s, failure_s, unit)))
    return 0


def reached(
    flags: ForecastFlags, forecasts: Sequence[Forecast], rental: Rental
) -> Iterator[tuple[str, list[Interval]]]:
    """How many iterations each number of ranks makes in --hours, and for --budget."""
    if flags.hours is not None:
        yield f"iterations in {flags.hours:g} h", [f.iterations_in(3600 * flags.hours) for f in forecasts]
    if flags.budget is not None:
        counts = [f.iterations_in(rental.run_s(flags.budget, f.num_ranks)) for f in forecasts]
        yield f"iterations for {flags.budget:g}", counts


def ledger(flags: LedgerFlags) -> int:
    """Print forecasts beside facts."""
    found = list(Ledger(flags.runs_dir).compare(run_folders(flags.runs_dir)))
    print(compared(found) if found else f"no run in {flags.runs_dir}/ has a forecast with its settings and ranks")
    return 0


def rental_of(flags: ForecastFlags) -> tuple[Rental, str]:
    """How the machine is paid, and where its price comes from. Raises UserError."""
    for name in ("price", "watts", "kwh", "budget", "hours", "profile_seconds"):
        value = getattr(flags, name)
        if value is not None and not 0 < value < math.inf:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} {value}", "it must be a number above 0", f"give {flag} 2.5, for example")
    price, source = flags.price, "--price"
    if (flags.watts is None) != (flags.kwh is None):
        raise UserError("--watts and --kwh", "one of them is missing", "give both, or --price")
    if price is None and flags.watts is not None and flags.kwh is not None:
        price, source = flags.watts / 1000 * flags.kwh, f"{flags.watts:g} W at {flags.kwh:g} a kilowatt-hour"
    if flags.budget is not None and price is None:
        raise UserError(f"--budget {flags.budget:g}", "no price is known", "give --price, what one GPU costs an hour")
    times = (seconds(getattr(flags, name), f"--{name}") for name in ("setup", "transfer", "billing"))
    return Rental(price, *times), source


def profile_of(flags: ForecastFlags, counts: Sequence[int]) -> Profile:
    """The profile of --profile, or one that is recorded now. Raises UserError."""
    if flags.profile is not None:
        profile = Profile.read(flags.profile)
        missing = [n for n in counts if n not in profile.traces]
        if missing:
            found = f"the profile has {', '.join(map(str, profile.traces))}, not {', '.join(map(str, missing))}"
            raise UserError(f"--profile {flags.profile}", found, "record it with these numbers of ranks")
        return profile
    argv = shlex.split(flags.train)
    settings = resolve(flags.workload, argv, outline=True)
    device = "cpu"
    if flags.gpus is not None:
        gpus = find_gpus()
        if not gpus.count:
            do = "use --ranks for CPU cores, or --profile with one that was recorded on a GPU"
            raise UserError("a profile on a GPU", gpus.why_none or "there is none here", do)
        device = "cuda:0"
    profile = measure_profile(settings, argv, counts, device, flags.profile_seconds)
    if flags.save_profile is not None:
        profile.write(flags.save_profile)
    return profile


def with_iterations(profile: Profile, flags: ForecastFlags) -> Profile:
    """With the iterations that the flags ask for."""
    if flags.iterations is not None and flags.iterations < 1:
        raise UserError(f"--iterations {flags.iterations}", "it is 1 or more", "give --iterations 100, for example")
    return profile if flags.iterations is None else replace(profile, iterations=flags.iterations)


def speedup_of(flags: ForecastFlags, profile: Profile) -> Speedup:
    """How much faster the GPU of --on is. Raises UserError."""
    if flags.on is None:
        return Speedup()
    from ranks.hardware.catalogue.gpus import by_name

    wanted, recorded = by_name(flags.on), find(profile.device)
    if recorded is None:
        found = f"the profile was recorded on {profile.device}, which the catalogue of GPUs does not have"
        do = "rent one such GPU, run this command there with --save-profile FILE, and give --profile FILE here"
        raise UserError(f"--on {flags.on}", found, do)
    return speedup(recorded, wanted)


def link_of(flags: ForecastFlags, profile: Profile) -> Link:
    """What connects the ranks. Raises UserError."""
    if flags.link is not None:
        return read_link(Path(flags.link))
    return probe_link("2" if profile.is_gpu else "none")
