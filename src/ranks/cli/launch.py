"""`ranks launch`: a script written for torchrun, under our supervision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.advice import LAUNCH_ADVICE
from ranks.cli.parse import parse
from ranks.errors import UserError

PROG = "ranks launch"


@dataclass(frozen=True)
class Flags:
    """Run a script that was written for torchrun: ranks launch [FLAGS] SCRIPT ARGS...

    After any failure of a rank all start again, nothing is left behind, and no port beyond loopback is opened."""

    gpus: str = "all"
    """all, none, how many (2), or which: a list has a comma (0,2 or 3,) and counts inside CUDA_VISIBLE_DEVICES."""
    ranks: int | None = None
    """Processes; without it one per GPU, or on the CPU one per core, 8 at most."""
    max_restarts: int = 3
    """How often a failed start is repeated before giving up."""


def launch(argv: Sequence[str]) -> int:
    """Split our flags from the script's, then start and supervise it."""
    ours = before_script(argv)
    flags = parse(Flags, argv[:ours], prog=PROG, advice=LAUNCH_ADVICE)
    if ours == len(argv):
        raise UserError(PROG, "no script was named", "write it behind the flags: ranks launch --ranks 2 train.py")
    from ranks.launch.foreign import launch_script

    return launch_script(
        Path(argv[ours]), argv[ours + 1 :], gpus=flags.gpus, ranks=flags.ranks, max_restarts=flags.max_restarts
    )


def before_script(argv: Sequence[str]) -> int:
    """How many arguments belong to `ranks launch`: flags with their values, up to the first word that is neither."""
    index = 0
    while index < len(argv) and argv[index].startswith("-"):
        alone = "=" in argv[index] or argv[index] in ("-h", "--help")
        index += 1 if alone else 2
    return min(index, len(argv))
