"""What `ranks forecast` computes with, from its flags: profile, GPU, link, price. Each has a source."""

from __future__ import annotations

import datetime
import math
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ranks.cli.flags.settings import Settings, resolve
from ranks.cli.flags.split import split_flags
from ranks.cli.forecasting.flags import ForecastFlags
from ranks.cli.forecasting.measure import measure_profile, probe_link, read_link
from ranks.engine.config import seconds
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.errors import UserError
from ranks.hardware.catalogue.gpus import Gpu, by_name, cards_of, find
from ranks.hardware.catalogue.links import DERIVED, catalogued_link, network_link
from ranks.hardware.catalogue.price_file import read_price_file
from ranks.hardware.catalogue.prices import age, known_prices, prices_of, read_prices
from ranks.hardware.forecast.job import Forecast, Speedup
from ranks.hardware.forecast.other_gpu import speedup
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.rental import Rental
from ranks.hardware.links.curve import Link
from ranks.hardware.this_machine import load_warning
from ranks.launch.gpus import find_gpus

CONTEXT_BYTES, FREE_SHARE = 10**9, 0.95
"""Of a GPU's memory: what CUDA and NCCL take, and which share of the data sheet's memory can be used."""
RENTED_SETUP = "5m"
MUCH_MORE = 10.0
"""A price so many times the usual one is likely in cents."""
OTHER_GPU = "rent one such GPU, run this command there with --save-profile FILE, and give --profile FILE here"
ABOVE_ZERO = ("price", "watts", "kwh", "budget", "hours", "iterations", "cores", "profile_seconds")


def check(flags: ForecastFlags) -> None:
    """Raises UserError for numbers and names that cannot be, before anything is measured."""
    for name in ABOVE_ZERO:
        value = getattr(flags, name)
        if value is not None and not 0 < value < math.inf:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} {value}", "it must be a number above 0", f"give {flag} 2, for example")
    if (flags.watts is None) != (flags.kwh is None):
        raise UserError("--watts and --kwh", "one of them is missing", "give both, or --price")
    if len(given := [flag for flag in ("price", "prices", "watts") if getattr(flags, flag) is not None]) > 1:
        found = "each of them says what the hour costs"
        raise UserError(" and ".join(f"--{flag}" for flag in given), found, f"give --{given[0]} alone, for example")
    if flags.ranks is not None and flags.prices is not None:
        raise UserError("--prices with --ranks", "prices are of GPUs", "give --price, what one rank costs an hour")
    if flags.on is not None:
        cards_of(flags.on)
    if flags.profile is None:
        _check_settings(flags, settings_of_train(flags))
    if flags.profile is not None and flags.train:
        found = "a profile has the settings that it was recorded with"
        raise UserError("--profile with --train", found, "leave one of them out")
    if flags.prices is not None:
        check_prices(flags.prices)
    if flags.budget is not None and flags.ranks is not None and flags.price is None and flags.watts is None:
        raise UserError(f"--budget {flags.budget:g}", "no price is known", "give --price, what one rank costs an hour")
    _times(flags)


def check_prices(path: Path) -> None:
    """Say which rows of a file of prices are not used. Raises UserError, also for prices that are likely in another
    unit."""
    found = read_price_file(path)
    if found.num_skipped:
        said = f"{found.num_skipped:,} rows of {path} are not used: no GPU of the catalogue, a part of one, or no price"
        print(f"warning: {said}", file=sys.stderr)
    for price in found.prices:
        usual = prices_of(price.gpu, price.num_gpus, known_prices()).on_demand
        highest_usd = max(price.usd_per_gpu_hour or 0.0, price.spot_usd_per_gpu_hour or 0.0)
        if usual is not None and highest_usd > MUCH_MORE * usual.median_usd_per_gpu_hour:
            usual_usd = f"{usual.median_usd_per_gpu_hour:.2f}"
            what = f"{price.gpu.name} for {highest_usd:g} USD an hour, where {usual_usd} is usual"
            raise UserError(f"the prices in {path}", what, "check the unit: USD for one GPU and hour, not cents")


def _check_settings(flags: ForecastFlags, settings: Settings) -> None:
    """Raises UserError for settings of the run that a profile cannot have."""
    most = max(flags.gpus or flags.ranks or (1,))
    if settings.flags.ranks is not None or settings.flags.gpus != "all":
        raise UserError('--train="--ranks ..."', "--ranks and --gpus are flags of ranks forecast", "give them to it")
    if settings.engine.shares is not None:
        do = f"ranks forecast {flags.workload} --shares {','.join(map(str, settings.engine.shares))} ..."
        raise UserError('--train="--shares ..."', "--shares is a flag of ranks forecast", do)
    if most > settings.engine.num_shards:
        found = f"the run has {settings.engine.num_shards} shards, and a rank needs at least one"
        raise UserError(f"{most} ranks", found, f'give --train="--shards {most}"')
    if flags.on is not None and flags.gpus is None:
        raise UserError(f"--on {flags.on}", "a profile of CPU cores says nothing of a GPU", OTHER_GPU)


def _times(flags: ForecastFlags) -> list[float]:
    """Seconds of set-up, transfer and the billing unit. Raises UserError."""
    is_rented = flags.watts is None and (flags.gpus is not None or flags.price is not None)
    setup = flags.setup if flags.setup is not None else RENTED_SETUP if is_rented else "0s"
    given = {"--setup": setup, "--transfer": flags.transfer, "--billing": flags.billing}
    times = [seconds(text, flag) for flag, text in given.items()]
    if times[-1] <= 0:
        raise UserError(f"--billing {flags.billing}", "a unit above 0 is needed", "give --billing 1s, for example")
    return times


def profile_of(flags: ForecastFlags, counts: Sequence[int]) -> Profile:
    """The profile of --profile, or one that is recorded now. Raises UserError."""
    if flags.profile is not None:
        profile = Profile.read(flags.profile)
        missing = [n for n in counts if n not in profile.traces]
        if missing:
            found = f"the profile has {', '.join(map(str, profile.traces))}, not {', '.join(map(str, missing))}"
            raise UserError(f"--profile {flags.profile}", found, "record it with these numbers of ranks")
        if flags.gpus is not None and not profile.is_gpu:
            asked = f"--gpus with --profile {flags.profile}"
            raise UserError(asked, f"it was recorded on a CPU, {profile.device}", "give --ranks, or record it on a GPU")
        if Path(profile.workload).stem != Path(flags.workload).stem:
            asked = f"ranks forecast {flags.workload} --profile {flags.profile}"
            raise UserError(asked, f"the profile is of {profile.workload}", f"ranks forecast {profile.workload} ...")
    else:
        settings = settings_of_train(flags)
        busy = load_warning(os.getloadavg()[0], available_cores(), "the times of the forecast are too long")
        if busy is not None:
            print(f"warning: {busy}", file=sys.stderr)
        argv = split_flags(flags.train) + ([] if flags.iterations is None else [f"--iterations={flags.iterations}"])
        profile = measure_profile(settings, argv, counts, _device(flags), flags.profile_seconds)
        if flags.save_profile is not None:
            profile.write(flags.save_profile)
    return profile if flags.iterations is None else replace(profile, iterations=flags.iterations)


def settings_of_train(flags: ForecastFlags) -> Settings:
    """The settings of the run. Raises UserError."""
    return resolve(flags.workload, split_flags(flags.train), outline=True)


def _device(flags: ForecastFlags) -> str:
    if flags.gpus is None:
        return "cpu"
    gpus = find_gpus()
    if not gpus.count:
        do = "use --ranks for CPU cores, or give --profile with one that was recorded on a GPU"
        raise UserError("a profile on a GPU", gpus.why_none or "there is none here", do)
    return "cuda:0"


def gpu_and_speedup(flags: ForecastFlags, profile: Profile) -> tuple[Gpu | None, Speedup]:
    """The GPU of the run, None where the catalogue does not know it, and how much faster it is than the recorded one.
    Raises UserError."""
    if flags.on is None:
        return (find(profile.device) if profile.is_gpu else None), Speedup()
    wanted = by_name(flags.on)
    return wanted, speedup(recorded_gpu(flags, profile), wanted)


def recorded_gpu(flags: ForecastFlags, profile: Profile) -> Gpu:
    """That of the profile, to compare those of --on with. Raises UserError where the catalogue does not know it."""
    recorded = find(profile.device) if profile.is_gpu else None
    if recorded is None:
        found = f"the profile was recorded on {profile.device}, which the catalogue of GPUs does not have"
        raise UserError(f"--on {flags.on}", found, OTHER_GPU)
    return recorded


def given_link(flags: ForecastFlags) -> Link | None:
    """The link that --link names. Raises UserError."""
    if flags.link is None:
        return None
    rate = re.fullmatch(r"([0-9.]{1,8})\s*gbit", flags.link.lower())
    if rate is None:
        return read_link(Path(flags.link))
    try:
        return network_link(float(rate[1]))
    except ValueError as error:
        raise UserError(f"--link {flags.link}", "that is no rate", "give --link 25gbit, for example") from error


def links_of(
    flags: ForecastFlags, profile: Profile, gpu: Gpu | None, counts: Sequence[int], given: Link | None
) -> dict[int, Link]:
    """What connects each number of ranks. Raises UserError where nothing is known."""
    if given is not None:
        return dict.fromkeys(counts, given)
    if max(counts) == 1:
        return {1: network_link(1.0)}  # one rank has no link
    if not profile.is_gpu:
        return dict.fromkeys(counts, probe_link("none"))
    here = find_gpus().count
    if flags.on is None and flags.profile is None and 1 < max(counts) <= here:
        link = probe_link("2")
        # another number of GPUs may have other links
        return {n: link if n <= 2 else replace(link, uncertainty=DERIVED) for n in counts}
    found: dict[int, Link] = {}
    for count in counts:
        if count == 1:
            found[1] = network_link(1.0)
            continue
        link = catalogued_link(gpu, count) if gpu is not None else None
        if link is None:
            name = gpu.name if gpu is not None else profile.device
            asked = f"the link between {count} of {name}"
            do = "give --link FILE of a measured one, or the rate of the network, for example --link 25gbit"
            raise UserError(asked, "the catalogue does not know it", do)
        found[count] = link
    return found


def cores_of(flags: ForecastFlags, profile: Profile, count: int) -> int | None:
    """CPU cores that `count` ranks share; None where the machine of the run is another one than that of the profile."""
    if flags.cores is not None:
        return flags.cores
    is_same = not profile.is_gpu or (flags.on is None and count <= profile.gpus)
    return profile.cores if is_same else None


def rental_of(flags: ForecastFlags, gpu: Gpu | None, count: int) -> Rental:
    """How `count` GPUs are paid, and where the price comes from. Raises UserError."""
    price, source = flags.price, "--price" if flags.price is not None else ""
    if price is None and flags.watts is not None and flags.kwh is not None:
        price, source = flags.watts / 1000 * flags.kwh, f"{flags.watts:g} W at {flags.kwh:g} a kilowatt-hour"
    if price is None and gpu is not None:
        known = known_prices() if flags.prices is None else read_prices(flags.prices)
        offers = prices_of(gpu, count, known)
        found = offers.spot if flags.spot else offers.on_demand
        if found is not None:
            price, cheapest = found.median_usd_per_gpu_hour, found.cheapest
            of = f"of {count}" if found.is_same_count else "of machines of other sizes"
            least = f"{found.cheapest_usd_per_gpu_hour:.2f} at {cheapest.provider}"
            old = age(cheapest, datetime.date.today())
            source = f"USD, median of {found.num_offers} offers {of}, the least {least}, {old}"
    if flags.budget is not None and price is None:
        raise UserError(f"--budget {flags.budget:g}", "no price is known", "give --price, what one GPU costs an hour")
    setup_s, transfer_s, unit_s = _times(flags)
    return Rental(price, setup_s, transfer_s, unit_s, source)


def too_small(gpu: Gpu | None, forecasts: Sequence[Forecast]) -> dict[int, str]:
    """The numbers of GPUs on which a rank needs more memory than one GPU has, and a sentence about each."""
    if gpu is None:
        return {}
    has_gb = gpu.memory_gb
    return {
        f.num_ranks: f"{f.num_ranks}: a rank needs {f.peak_bytes / 1e9:.1f} GB, and one {gpu.name} has {has_gb:g} GB"
        for f in forecasts
        if f.peak_bytes > usable_bytes(gpu)
    }


def usable_bytes(gpu: Gpu) -> float:
    """What a rank may hold of a GPU's memory."""
    return FREE_SHARE * gpu.memory_gb * 1e9 - CONTEXT_BYTES
