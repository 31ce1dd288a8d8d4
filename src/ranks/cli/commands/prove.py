"""`ranks prove PROOF WORKLOAD`: run one of the proofs on a workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from ranks.cli.flags.parse import FLATTENED, call
from ranks.errors import UserError, nearest
from ranks.prove.options import ProofOptions

Options = Annotated[ProofOptions, FLATTENED]
DEFAULT = ProofOptions()


def same_run(workload: str, /, options: Options = DEFAULT, *, level: Literal["all", "L1", "L2", "L3"] = "all") -> int:
    """Prove that the result of a run does not depend on the number of ranks.

    Args:
        workload: Its name, or the path of your own file.
        level: Prove one level only: L3 equal bits with --exact, L2 equal updates up to rounding, L1 equal rollouts.
    """
    from ranks.prove.same_run import prove_same_run

    return prove_same_run(workload, options, level)


def survive(
    workload: str,
    /,
    options: Options = DEFAULT,
    *,
    runs: int | None = None,
    kills: int = 3,
    sigterms: int | None = None,
    hangs: int | None = None,
    hung_sigterms: int | None = None,
    damages: int | None = None,
) -> int:
    """Prove that kills, hangs, stop signals and damaged files lose no saved work and do not change the result.

    Args:
        workload: Its name, or the path of your own file.
        runs: Runs that are killed; 10, or 2 with --quick.
        kills: SIGKILLs of each run.
        sigterms: Stops by SIGTERM; 30, or 5 with --quick.
        hangs: Ranks that are made to hang; 60, or 4 with --quick.
        hung_sigterms: Stops by SIGTERM while a rank hangs; 20, or 2 with --quick.
        damages: Kept files that are damaged on purpose, for workloads that have them; 11, or 4 with --quick.
    """
    from ranks.prove.survive import prove_survive

    return prove_survive(
        workload,
        options,
        runs=runs,
        kills=kills,
        sigterms=sigterms,
        hangs=hangs,
        hung_sigterms=hung_sigterms,
        damages=damages,
    )


def table(
    workload: str,
    /,
    *,
    quick: bool = False,
    instances: Path | None = None,
    seeds: int | None = None,
    out: Path = Path("results"),
) -> int:
    """Make the tables of a workload and compare each row with its bar.

    Args:
        workload: Its name, or the path of your own file.
        quick: Fewer cases, the same comparison.
        instances: A folder of public instances to compare on, for workloads whose table takes one.
        seeds: Seeds to train, for workloads whose table takes them.
        out: Folder of the result file.
    """
    from ranks.prove.table import prove_table

    return prove_table(workload, quick=quick, instances=instances, out=out, seeds=seeds)


PROOFS: dict[str, tuple[str, Callable[..., int]]] = {
    "same-run": (
        "the result does not depend on the number of ranks: equal bits with --exact, equal to rounding without",
        same_run,
    ),
    "survive": ("kills, hangs and stop signals at any moment lose no saved work", survive),
    "table": ("the workload's results next to other methods, each with its bar", table),
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
    return int(call(PROOFS[argv[0]][1], argv[1:], prog=f"ranks prove {argv[0]}"))
