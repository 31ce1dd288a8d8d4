"""`ranks launch`: run a script that was written for torchrun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.advice import LAUNCH_ADVICE
from ranks.cli.parse import parse
from ranks.errors import UserError

PROG = "ranks launch"


@dataclass(frozen=True)
class LaunchFlags:
    """Run a script that was written for torchrun: ranks launch [FLAGS] SCRIPT ARGS...

    If a rank fails, all ranks are restarted. No process is left over at the end, and only loopback
    ports are opened."""

    gpus: str = "all"
    """all, none, how many (2), or which: a list has a comma (0,2 or 3,) and counts inside
    CUDA_VISIBLE_DEVICES."""
    ranks: int | None = None
    """Number of processes; without it one per GPU, or on the CPU one per core, at most 8."""
    max_restarts: int = 3
    """How often all ranks are restarted after a failure before it gives up."""


def launch(argv: Sequence[str]) -> int:
    """Split our flags from the script's, then start and supervise it."""
    num_own = before_script(argv)
    flags = parse(LaunchFlags, argv[:num_own], prog=PROG, advice=LAUNCH_ADVICE)
    if num_own == len(argv):
        raise UserError(PROG, "no script was named", "write it after the flags: ranks launch --ranks 2 train.py")
    from ranks.launch.foreign import launch_script

    return launch_script(
        Path(argv[num_own]), argv[num_own + 1 :], gpus=flags.gpus, ranks=flags.ranks, max_restarts=flags.max_restarts
    )


def before_script(argv: Sequence[str]) -> int:
    """The number of arguments before the script: the flags of `ranks launch` and their values."""
    index = 0
    while index < len(argv) and argv[index].startswith("-"):
        has_no_value = "=" in argv[index] or argv[index] in ("-h", "--help")
        index += 1 if has_no_value else 2
    return min(index, len(argv))
