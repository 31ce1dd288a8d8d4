"""`ranks scale WORKLOAD`: measure how the speed grows with the number of ranks, and say what limits it."""

from __future__ import annotations

from collections.abc import Sequence

from ranks.cli.flags.counts import numbers_of_ranks
from ranks.cli.flags.parse import parse
from ranks.cli.flags.settings import resolve
from ranks.cli.flags.split import split_flags
from ranks.cli.scaling.scale_flags import PROG, ScaleFlags, check, check_settings


def scale(argv: Sequence[str]) -> int:
    """Measure, then print a table, the limit and a remedy."""
    flags = parse(ScaleFlags, argv, prog=PROG)
    check(flags)
    settings = resolve(flags.workload, split_flags(flags.train), outline=True)
    check_settings(settings, flags)
    from ranks.cli.scaling import modes  # imports torch, which the help page does not need

    if flags.micro_batch is not None or flags.global_batch is not None:
        return modes.batches(flags, settings)
    counts, unit = numbers_of_ranks(PROG, flags.gpus, flags.ranks)
    if flags.shares is not None:
        return modes.shares(flags, settings, counts)
    return modes.numbers(flags, settings, counts, unit)
