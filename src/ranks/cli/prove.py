"""`ranks prove PROOF WORKLOAD`: run one of the proofs on a workload."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from ranks.cli.parse import call
from ranks.errors import UserError, nearest

PROOFS = {
    "same-run": (
        "the result does not depend on the number of ranks: equal bits with --exact, equal to rounding without",
        "ranks.prove.same_run",
    ),
    "survive": ("kills and stop signals at any moment lose no work that was saved", "ranks.prove.survive"),
    "table": ("the workload's results next to other methods, each with its bar", "ranks.prove.table"),
}


def prove(argv: Sequence[str]) -> int:
    """Run a proof. Exit code 0 for PASS, 1 for FAIL."""
    if not argv or argv[0] in ("-h", "--help"):
        lines = [f"  {name:<10} {summary}" for name, (summary, _) in PROOFS.items()]
        print("\n".join(["usage: ranks prove PROOF WORKLOAD ...", "", *lines]))
        return 0
    if argv[0] not in PROOFS:
        do = nearest(argv[0], list(PROOFS), "see ranks prove --help")
        raise UserError(f"ranks prove {argv[0]}", "there is no such proof", do)
    module = import_module(PROOFS[argv[0]][1])
    return int(call(module.main, argv[1:], prog=f"ranks prove {argv[0]}"))
