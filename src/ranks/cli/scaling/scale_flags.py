"""The flags of `ranks scale`, and what they must not be."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ranks.cli.flags.parse import Positional
from ranks.cli.flags.settings import Settings
from ranks.errors import UserError

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
    """With --shares auto: the items that each rank may carry at most. By default, on GPUs, as many as its memory holds,
    which is measured with small passes."""
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
