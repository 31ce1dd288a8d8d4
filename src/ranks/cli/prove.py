"""`ranks prove PROOF WORKLOAD`: run one of the proofs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from ranks.cli.outline import outline_function, wants_help
from ranks.cli.parse import call
from ranks.errors import UserError, nearest

PROOFS = {
    "same-run": (
        "the result is the same on any number of ranks: to the bit, or in fast mode to rounding",
        "ranks.prove.same_run",
    ),
    "survive": ("kills and stops at any moment do not change the result", "ranks.prove.survive"),
    "table": ("the workload's results compared with other methods, each with its goal", "ranks.prove.table"),
}


def prove(argv: Sequence[str]) -> int:
    """0 when the proof holds, 1 when it says FAIL."""
    if not argv or argv[0] in ("-h", "--help"):
        lines = [f"  {name:<10} {summary}" for name, (summary, _) in PROOFS.items()]
        print("\n".join(["usage: ranks prove PROOF WORKLOAD ...", "", *lines]))
        return 0
    if argv[0] not in PROOFS:
        do = nearest(argv[0], list(PROOFS), "see ranks prove --help")
        raise UserError(f"ranks prove {argv[0]}", "no such proof", do)
    module = PROOFS[argv[0]][1]
    shown = outline_function(f"{module}:main") if wants_help(argv) else None
    return int(call(shown or import_module(module).main, argv[1:], prog=f"ranks prove {argv[0]}"))
