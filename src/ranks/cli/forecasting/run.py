"""Compute a forecast and print it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ranks.cli.flags.counts import numbers_of_ranks
from ranks.cli.forecasting import inputs
from ranks.cli.forecasting.flags import ForecastFlags
from ranks.cli.forecasting.table import advice, as_json, compared, sources, table
from ranks.engine.config import seconds
from ranks.engine.runs.find_run import run_folders
from ranks.errors import UserError
from ranks.hardware.forecast.job import Forecast, ForecastInterval, best, forecast_run
from ranks.hardware.forecast.ledger import ForecastLedger
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.rental import Rental


def print_forecast(flags: ForecastFlags) -> int:
    """Profile the workload, measure the link, and print the forecast of each number of ranks."""
    counts, unit = numbers_of_ranks("ranks forecast", flags.gpus, flags.ranks)
    inputs.check(flags)
    deadline_s = None if flags.deadline is None else seconds(flags.deadline, "--deadline")
    failure_s = seconds(flags.failure_every, "--failure-every")
    given = inputs.given_link(flags)
    profile = inputs.profile_of(flags, counts)
    gpu, faster = inputs.gpu_and_speedup(flags, profile)
    rentals = {n: inputs.rental_of(flags, gpu, n) for n in counts}
    links = inputs.links_of(flags, profile, gpu, counts, given)
    cores = {n: inputs.cores_of(flags, profile, n) for n in counts}
    forecasts = [forecast_run(profile, profile.traces[n], links[n], rentals[n], faster, cores=cores[n]) for n in counts]
    too_small = inputs.too_small(gpu, forecasts)
    fitting = [f for f in forecasts if f.num_ranks not in too_small]
    chosen = best(fitting, deadline_s=deadline_s, budget=flags.budget)
    note(flags, profile, forecasts, [gpu.name] if flags.on is not None and gpu is not None else [])
    if flags.json:
        print(json.dumps(as_json(profile, links, rentals, cores, forecasts, chosen), indent=2))
        return 0
    print(f"forecast: {profile.workload}, {profile.iterations:,} iterations")
    print("\n".join(f"  {line}" for line in sources(profile, links, rentals, faster, cores)))
    print(f"\n{table(forecasts, profile.iterations, unit, list(reached(flags, forecasts, list(rentals.values()))))}\n")
    save_s = min(trace.save_s for trace in profile.traces.values())
    print("\n".join(advice(chosen, list(too_small.values()), save_s, failure_s, unit)))
    return 0


def note(flags: ForecastFlags, profile: Profile, forecasts: Sequence[Forecast], cards: Sequence[str]) -> None:
    """Note the forecasts for `--ledger`; a folder that cannot be written loses nothing else. `cards`: those of --on."""
    try:
        ForecastLedger(flags.runs_dir).add(profile, forecasts, cards)
    except UserError as error:
        print(f"warning: not noted for --ledger: {error.found}", file=sys.stderr)


def reached(
    flags: ForecastFlags, forecasts: Sequence[Forecast], rentals: Sequence[Rental]
) -> Iterator[tuple[str, list[ForecastInterval]]]:
    """How many iterations each forecast makes in --hours, and for --budget. `rentals`: one for each."""
    if flags.hours is not None:
        yield f"iterations in {flags.hours:g} h", [f.iterations_in(3600 * flags.hours) for f in forecasts]
    if flags.budget is not None:
        runs_s = [r.run_s(flags.budget, f.num_ranks) for f, r in zip(forecasts, rentals, strict=True)]
        counts = [f.iterations_in(run_s) for f, run_s in zip(forecasts, runs_s, strict=True)]
        yield f"iterations for {flags.budget:g}", counts


def print_ledger(runs_dir: Path, *, in_json: bool) -> int:
    """Print forecasts and facts."""
    if not runs_dir.is_dir():
        asked = f"ranks forecast --ledger --runs-dir {runs_dir}"
        raise UserError(asked, "there is no such folder", "name the folder of the runs")
    found = list(ForecastLedger(runs_dir).compare(run_folders(runs_dir)))
    if in_json:
        print(json.dumps([c.as_json() for c in found], indent=2))
        return 0
    print(compared(found) if found else f"no run in {runs_dir}/ has a forecast with its settings, device and ranks")
    return 0
