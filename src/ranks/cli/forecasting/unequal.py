"""`ranks forecast` of ranks that are not equal: cards of several kinds in one run, or given shares."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ranks.cli.flags.counts import numbers_of_ranks
from ranks.cli.forecasting import inputs
from ranks.cli.forecasting.flags import ForecastFlags
from ranks.cli.forecasting.run import note, reached
from ranks.cli.forecasting.unequal_table import Candidate, advice_of_rows, as_json, rank_table, row_table, sources
from ranks.engine.config import seconds
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.errors import UserError
from ranks.hardware.catalogue.gpus import Gpu, cards_of
from ranks.hardware.catalogue.links import link_of_cards, network_link
from ranks.hardware.forecast.job import best, forecast_run
from ranks.hardware.forecast.other_gpu import speedup
from ranks.hardware.forecast.profile import Profile
from ranks.hardware.forecast.rental import Rental
from ranks.hardware.forecast.unequal import (
    RankDevice,
    forecast_unequal,
    memory_line,
    most_shards,
    shares_by_speed,
)
from ranks.hardware.links.curve import Link


def print_unequal(flags: ForecastFlags) -> int:
    """Forecast one run with shares by speed, or given ones, with equal shares, and on each kind of card alone."""
    cards = None if flags.on is None or not {"+", "*"} & {*flags.on} else cards_of(flags.on)
    if cards is not None:
        flags = with_count(flags, cards)
    counts, unit = numbers_of_ranks("ranks forecast", flags.gpus, flags.ranks)
    check_count(flags, counts)
    num_ranks = counts[0]
    inputs.check(flags)
    deadline_s = None if flags.deadline is None else seconds(flags.deadline, "--deadline")
    failure_s = seconds(flags.failure_every, "--failure-every")
    given = inputs.given_link(flags)
    profile = inputs.profile_of(with_equal_threads(flags, num_ranks), [1, num_ranks])
    check_threads(flags, profile, num_ranks)
    if cards is None:
        gpu, faster = inputs.gpu_and_speedup(flags, profile)
        usable = None if gpu is None else inputs.usable_bytes(gpu)
        devices = [RankDevice(profile.device if gpu is None else gpu.name, faster, usable)] * num_ranks
        link = inputs.links_of(flags, profile, gpu, [num_ranks], given)[num_ranks]
        rental = inputs.rental_of(flags, gpu, num_ranks)
    else:
        recorded = inputs.recorded_gpu(flags, profile)
        devices = [RankDevice(gpu.name, speedup(recorded, gpu), inputs.usable_bytes(gpu)) for gpu in cards]
        link = given or catalogued(flags, cards)
        rental = rental_of_cards(flags, cards)
    shares = flags.shares or shares_by_speed(profile, devices)
    if shares is None:
        raise too_large(flags, profile, devices)
    cores = inputs.cores_of(flags, profile, num_ranks)
    divided = forecast_unequal(profile, devices, shares, link, rental, cores=cores)
    equal = forecast_unequal(profile, devices, (1,) * num_ranks, link, rental, cores=cores)
    named = f"shares {','.join(map(str, shares))}"
    rows = [Candidate(named, divided.whole, rental, divided.fits)]
    if equal.whole.shards_per_rank != divided.whole.shards_per_rank:
        rows.append(Candidate("equal shares", equal.whole, rental, equal.fits))
    note(flags, profile, [divided.whole, equal.whole], [] if flags.on is None else [d.name for d in devices])
    if cards is not None:
        lone = alone(flags, profile, dict(zip(cards, devices, strict=True)), priced=rental.gpu_hour is not None)
        for gpu, row in zip(dict.fromkeys(cards), lone, strict=True):
            note(flags, profile, [row.forecast], [gpu.name])
        rows += lone
    chosen = best([row.forecast for row in rows if row.fits], deadline_s=deadline_s, budget=flags.budget)
    if flags.json:
        print(json.dumps(as_json(profile, devices, shares, link, rows, divided, equal, chosen), indent=2))
        return 0
    print(f"forecast: {profile.workload}, {profile.iterations:,} iterations")
    print("\n".join(f"  {line}" for line in sources(profile, devices, link, rental, shares, cores, given=flags.shares)))
    columns = list(reached(flags, [row.forecast for row in rows], [row.rental for row in rows]))
    print(f"\n{row_table(rows, columns)}\n\n{rank_table(divided)}\n")
    save_s = min(trace.save_s for trace in profile.traces.values())
    print("\n".join(advice_of_rows(rows, divided, equal, chosen, save_s, failure_s, unit)))
    return 0


def with_count(flags: ForecastFlags, cards: Sequence[Gpu]) -> ForecastFlags:
    """With the number of cards as --gpus. Raises UserError where --gpus is another one."""
    if len(cards) < 2:
        do = f'ranks forecast {flags.workload} --on "{cards[0].name}" --gpus 1'
        raise UserError(f"--on {flags.on}", "one card", do)
    if flags.gpus is not None and flags.gpus != (len(cards),):
        asked = f"--gpus {','.join(map(str, flags.gpus))} with --on {flags.on}"
        raise UserError(asked, f"--on names {len(cards)} cards", "leave --gpus out, or name as many cards")
    return replace(flags, gpus=(len(cards),))


def check_count(flags: ForecastFlags, counts: Sequence[int]) -> None:
    """Raises UserError for several numbers of ranks, and for shares that are not one for each rank."""
    if len(counts) != 1 or counts[0] < 2:
        shown = ",".join(map(str, flags.shares or ()))
        raise UserError(f"--shares {shown}", "one number of ranks is needed, 2 or more", "give --gpus 2, for example")
    if flags.shares is not None:
        shown = ",".join(map(str, flags.shares))
        if len(flags.shares) != counts[0]:
            raise UserError(f"--shares {shown}", f"{counts[0]} ranks", "give one share for each of them")
        if min(flags.shares) < 0 or not any(flags.shares):
            raise UserError(f"--shares {shown}", "shares are not negative and not all zero", "give 5,3, for example")


def with_equal_threads(flags: ForecastFlags, num_ranks: int) -> ForecastFlags:
    """On CPU cores: a rank alone is recorded with the threads that it has in company, so that their work compares."""
    if flags.ranks is None or flags.profile is not None or inputs.settings_of_train(flags).engine.threads is not None:
        return flags
    return replace(flags, train=f"{flags.train} --threads {max(1, available_cores() // num_ranks)}")


def check_threads(flags: ForecastFlags, profile: Profile, num_ranks: int) -> None:
    """Raises UserError for a profile of CPU cores whose rank alone had other threads."""
    alone, in_company = profile.threads.get(1), profile.threads.get(num_ranks)
    if not profile.is_gpu and alone != in_company:
        found = f"one rank alone was recorded with {alone} threads, one of {num_ranks} with {in_company}"
        raise UserError(f"--profile {flags.profile}", found, f'record it with --train="--threads {in_company}"')


def catalogued(flags: ForecastFlags, cards: Sequence[Gpu]) -> Link:
    """The link of the catalogue. Raises UserError where it knows none."""
    link = link_of_cards(cards)
    if link is None:
        names = " and ".join(dict.fromkeys(gpu.name for gpu in cards))
        found = f"the catalogue knows no link between {names}: only cards without NVLink share a machine with others"
        raise UserError(f"--on {flags.on}", found, "give --link FILE of a measured one, or for example --link 25gbit")
    return link


def rental_of_cards(flags: ForecastFlags, cards: Sequence[Gpu]) -> Rental:
    """With the mean price of these cards, each in its own machine size; unknown where one of them is."""
    each = {gpu: inputs.rental_of(flags, gpu, cards.count(gpu)) for gpu in dict.fromkeys(cards)}
    first, *others = each.values()
    if all(rental == first for rental in others):  # given by --price, or cards of one kind
        return first
    unknown = [gpu.name for gpu, rental in each.items() if rental.gpu_hour is None]
    if unknown:
        return replace(first, gpu_hour=None, source=f"{' and '.join(unknown)} unknown")
    prices = [rental.gpu_hour for gpu in cards if (rental := each[gpu]).gpu_hour is not None]
    named = [f"{gpu.name} {rental.gpu_hour:,.2f}, {rental.source}" for gpu, rental in each.items()]
    return replace(first, gpu_hour=sum(prices) / len(prices), source="; ".join(named))


def alone(
    flags: ForecastFlags, profile: Profile, devices: Mapping[Gpu, RankDevice], *, priced: bool
) -> list[Candidate]:
    """One card of each kind with all the work. `priced`: whether the price of every card is known; costs of some alone
    cannot be compared."""
    trace, rows = profile.traces[1], list[Candidate]()
    for gpu, device in devices.items():
        rental = inputs.rental_of(flags, gpu, 1)
        rental = rental if priced else replace(rental, gpu_hour=None)
        cores = inputs.cores_of(flags, profile, 1)
        found = forecast_run(profile, trace, network_link(1.0), rental, device.faster, cores=cores)  # it has no link
        fits = device.usable_bytes is None or trace.peak_bytes <= device.usable_bytes
        rows.append(Candidate(f"{gpu.name} alone", found, rental, fits))
    return rows


def too_large(flags: ForecastFlags, profile: Profile, devices: Sequence[RankDevice]) -> UserError:
    """The error for cards whose memory does not hold the work."""
    line, num_shards = memory_line(profile, len(devices)), profile.num_shards
    most = [most_shards(line, device.usable_bytes, num_shards) for device in devices]
    asked = f"--on {flags.on}" if flags.on is not None else f"{len(devices)} ranks"
    do = 'leave that card out, or record a profile with smaller passes: --train="--micro-batch N"'
    rank = min(range(len(devices)), key=lambda rank: most[rank])
    usable, least = devices[rank].usable_bytes or 0.0, line.at(1 / num_shards)
    if most[rank] == 0:
        found = f"a rank with one of {num_shards} shards needs {least / 1e9:.1f} GB"
        return UserError(asked, f"{found}, and {devices[rank].name} can give it {usable / 1e9:.1f} GB", do)
    return UserError(asked, f"all cards together hold {sum(most)} of {num_shards} shards", do)
