"""`ranks submit sky|modal|slurm WORKLOAD`: write the file that takes a run to a machine of others, checked first."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from ranks.errors import UserError, nearest

WAYS = {
    "slurm": "ranks.cli.renting.submit_slurm:submit_slurm",
    "sky": "ranks.cli.renting.submit_sky:submit_sky",
    "modal": "ranks.cli.renting.submit_modal:submit_modal",
}
"""Name -> the function that writes the file, and starts it."""


def submit(argv: Sequence[str]) -> int:
    """Find the way to start runs, and write its file."""
    listed = f"the ways are {', '.join(WAYS)}"
    if not argv or argv[0] in ("-h", "--help"):
        if argv:
            helps = "\n".join(f"help: ranks submit {way} --help" for way in WAYS)
            print(f"usage: ranks submit {'|'.join(WAYS)} WORKLOAD [FLAGS]\n\n{helps}")
            return 0
        raise UserError("ranks submit", "no way to start the run was named", f"{listed}: ranks submit slurm WORKLOAD")
    if argv[0] not in WAYS:
        raise UserError(f"ranks submit {argv[0]}", "there is no such way", nearest(argv[0], list(WAYS), listed))
    module, function = WAYS[argv[0]].split(":")
    return getattr(import_module(module), function)(argv[1:])
