"""The flags of `ranks scale`, and what they must not be."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ranks.cli.flags.parse import Positional
from ranks.cli.flags.settings import Settings
from ranks.cli.scaling.measure import Measurement
from ranks.engine.distributed.process_env import available_cores
from ranks.errors import UserError
from ranks.launch.gpus import find_gpus

PROG = "ranks scale"


@dataclass(frozen=True)
class ScaleFlags:
    """Measure the speed of a workload on several numbers of GPUs, and say what limits it.

    Real ranks train for some seconds in a temporary folder, without evaluations and saves: each number of ranks once in
    every round. Strong scaling keeps the global batch, weak scaling multiplies it by the number of ranks."""

    workload: Positional[str]
    """Its name, or the path of your own file."""
    gpus: tuple[int, ...] | None = None
    """Numbers of GPUs, for example 1,2,4,8."""
    ranks: tuple[int, ...] | None = None
    """Numbers of ranks on CPU cores, in place of --gpus."""
    train: str = ""
    """Flags of ranks train for all runs, in one string: --train="--preset small"."""
    only: Literal["strong", "weak"] | None = None
    """Measure one kind of scaling; by default both."""
    micro_batch: tuple[int, ...] | None = None
    """In place of several ranks: one rank with these micro-batches and the same global batch, for example 64,128."""
    global_batch: tuple[int, ...] | None = None
    """In place of several ranks: one rank with these global batches. Each is another training."""
    shares: Literal["auto"] | None = None
    """Measure how fast each rank is with equal shares, and print the --shares with which all end at the same time."""
    max_items: tuple[int, ...] | None = None
    """With --shares auto: the items that the memory of each rank holds."""
    rounds: int = 3
    """How often each run is made; the numbers of ranks take turns."""
    seconds: float = 8.0
    """How long each run trains. It is longer where three iterations take longer."""
    out: Path | None = None
    """Write scale.json into this folder, and for several numbers of ranks a picture."""
    json: bool = False
    """Print JSON in place of a table."""


def check(flags: ScaleFlags) -> None:
    """Raises UserError for flags that are impossible or contradict each other."""
    if flags.rounds < 1:
        raise UserError(f"--rounds {flags.rounds}", "it is 1 or more", "give --rounds 3, for example")
    if not 0 < flags.seconds < math.inf:
        raise UserError(f"--seconds {flags.seconds}", "it must be a number above 0", "give --seconds 8, for example")
    modes = {"--micro-batch": flags.micro_batch, "--global-batch": flags.global_batch, "--shares": flags.shares}
    given = [name for name, value in modes.items() if value is not None]
    if len(given) > 1:
        raise UserError(" with ".join(given), "each is a measurement of its own", "give one of them")
    if flags.max_items is not None and flags.shares is None:
        raise UserError("--max-items", "it belongs to --shares auto", "give --shares auto, or leave it out")
    if flags.only is not None and given:
        raise UserError(f"--only {flags.only} with {given[0]}", "it is for several numbers of ranks", "leave it out")


def check_settings(settings: Settings, flags: ScaleFlags) -> None:
    """Raises UserError where --train has flags that each run gets from this command, or where Config is not enough."""
    own = {
        "--ranks": settings.flags.ranks,
        "--gpus": None if settings.flags.gpus == "all" else settings.flags.gpus,
        "--shares": settings.engine.shares,
        "--max-time": settings.engine.max_time,
    }
    wrong = [name for name, value in own.items() if value is not None]
    if wrong:
        asked = f"--train={shlex.quote(flags.train)}"
        raise UserError(asked, f"the measurement chooses {wrong[0]} for each of its runs", f"leave {wrong[0]} out")
    if not hasattr(settings.config, "iterations"):
        found = f"Config of {settings.workload} has no field iterations"
        raise UserError(f"{PROG} {settings.workload}", found, "name the number of iterations so")


def measurement_of(flags: ScaleFlags, settings: Settings, counts: Sequence[int]) -> Measurement:
    """What all runs share. Raises UserError where there are more ranks than GPUs or cores."""
    most, cores = max(counts), available_cores()
    gpus = find_gpus()
    on_gpus = flags.gpus is not None or (flags.ranks is None and gpus.count > 0)
    threads = settings.engine.resolved().threads or max(1, cores // most)
    name = "--gpus" if on_gpus else "--ranks"
    asked = f"{name} {','.join(map(str, counts))}"
    if on_gpus and most > gpus.count:
        found = f"this machine has {gpus.count} GPUs" if gpus.count else gpus.why_none
        raise UserError(asked, found, "measure where they are; ranks forecast needs one GPU, --ranks is for CPU cores")
    if not on_gpus and most * threads > cores:
        of_each = f" of {threads} threads" if threads > 1 else ""
        found = f"{most} ranks{of_each} on {cores} cores would wait for each other's cores"
        raise UserError(asked, found, f"give at most {max(1, cores // threads)} ranks")
    if most > settings.engine.num_shards:
        found = f"the run has {settings.engine.num_shards} shards, and a rank needs at least one"
        raise UserError(asked, found, f'give --train="--shards {most}"')
    train = tuple(shlex.split(flags.train))
    return Measurement(flags.workload, train, on_gpus, threads, flags.seconds, flags.rounds)
