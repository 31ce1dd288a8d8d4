"""The flags of `ranks forecast`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional


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
    """Another GPU than that of the profile, for example h200. Or the cards of one run, where they differ:
    rtx6000ada+rtx4090, or l40s*2+l4."""
    shares: tuple[int, ...] | None = None
    """Shards of each rank in proportion, as of ranks train, for one number of GPUs. With cards that differ it is by
    default their speed, within the memory of each."""
    link: str | None = None
    """What connects the ranks: a file of a measured link, or the rate of a network, for example 25gbit. By default it
    is measured here with two ranks, or taken from the catalogue for another GPU or where there is only one."""
    cores: int | None = None
    """CPU cores that all ranks share. By default those of the machine of the profile, where it has as many GPUs; else
    they are unknown and limit nothing."""
    price: float | None = None
    """What one GPU costs an hour, or the mean of cards that differ. Without it, the median of dated prices in the
    catalogue."""
    prices: Path | None = None
    """A CSV file of prices in place of the catalogue's, with the columns of SkyPilot's catalogues."""
    spot: bool = False
    """Take prices of machines that the provider may take back."""
    watts: float | None = None
    """Of one GPU with its share of the machine, with --kwh, for a machine of your own."""
    kwh: float | None = None
    """Price of a kilowatt-hour."""
    iterations: int | None = None
    """Of the run; by default as its settings say."""
    hours: float | None = None
    """Print how many iterations a run makes in so many hours."""
    deadline: str | None = None
    """The job must end within this time, with set-up and transfer: 90m, 8h. The cheapest number of GPUs is named."""
    budget: float | None = None
    """The run may cost so much: print how many iterations that pays for, and name the fastest number of GPUs that
    finishes the run."""
    setup: str | None = None
    """Time before the command starts, paid too: boot, installation. By default 5m; 0s on a machine of your own, which
    CPU cores without --price are, and GPUs with --watts."""
    transfer: str = "0s"
    """Time for data up and results down, paid too."""
    billing: str = "1m"
    """Started units of this time are paid."""
    failure_every: str = "24h"
    """Mean time between failures of a machine, for the interval of saves (Young and Daly)."""
    profile: Path | None = None
    """Use a profile that --save-profile has written, for example on a rented GPU. The workload is not run then. Several
    CPU ranks without --link measure the link of this machine."""
    save_profile: Path | None = None
    """Write the profile to a file."""
    profile_seconds: float = 10.0
    """How long iterations are recorded for each number of ranks; at least three of them are."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders. The forecast is noted there for `ranks forecast --ledger`."""
    json: bool = False
    """Print JSON in place of a table."""


@dataclass(frozen=True)
class LedgerFlags:
    """Compare forecasts with the runs that followed them."""

    ledger: bool = False
    """Print the comparison."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""
    json: bool = False
    """Print JSON in place of a table."""
