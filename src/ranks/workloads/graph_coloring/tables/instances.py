"""Public instances: the solvers with the network and the classical solvers, each with the same
seconds.

The bar compares "net + repair" with DSATUR. The network deserves the credit only if "random +
repair", the same repair from random colours, does worse. So that solver is a column of the table,
and the facts name the instances where the network is better, equal and worse.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranks.engine.distributed.precision import one_thread
from ranks.workloads.graph_coloring.net.weights_file import LoadedNet
from ranks.workloads.graph_coloring.solving.bench.best_known import read_best_known
from ranks.workloads.graph_coloring.solving.bench.report import BenchResult, net_comparison
from ranks.workloads.graph_coloring.solving.bench.run import read_instances, run_all
from ranks.workloads.graph_coloring.solving.search.net_solvers import NetSolvers
from ranks.workloads.graph_coloring.solving.search.solvers import CLASSICAL_SOLVERS

BETTER_ON = ("queen8_8", "queen8_12", "queen9_9", "queen10_10", "queen11_11", "le450_15a", "DSJC125.5", "school1_nsh")
"""Instances where net + repair must use fewer colours than DSATUR; elsewhere not more."""

TIMED = ("TabuCol", "HEAD", "net + TabuCol", "net + HEAD")
"""Solvers whose row also has the seconds until their best colouring."""


@dataclass(frozen=True)
class InstanceTable:
    """The results of a bench on public instances."""

    rows: list[dict[str, Any]]
    """For each instance: the colours of each solver, and the bar of net + repair."""
    facts: dict[str, Any]
    """The settings, and the comparison of each solver with the same solver without the network."""
    csv: list[str]
    """The lines of the bench's CSV file: a header, then one line for each instance and solver."""


def instance_table(net: LoadedNet, folder: Path, budget_s: float) -> InstanceTable:
    """Run every solver for `budget_s` seconds on each instance of a folder. Raises UserError."""
    instances, csv = read_instances(folder, read_best_known(None)), io.StringIO()
    with one_thread():
        found = run_all(instances, CLASSICAL_SOLVERS | NetSolvers(net.model).by_name(), budget_s, 1, csv)
    rows = [instance_row([row for row in found if row.instance == instance.name]) for instance in instances]
    facts = {"instances: seconds for each solver": budget_s, "instances: torch threads": 1}
    return InstanceTable(rows, facts | net_comparison(found), csv.getvalue().splitlines())


def instance_row(results: Sequence[BenchResult]) -> dict[str, Any]:
    """The row of one instance. A solver without a proper colouring has '-', and fails its bar."""
    one, by_solver = results[0], {result.solver: result for result in results}
    repaired, classical = by_solver["net + repair"].colours, by_solver["DSATUR"].colours
    assert classical is not None
    must_win = one.instance in BETTER_ON
    passed = repaired is not None and (repaired < classical if must_win else repaired <= classical)
    colours = {solver: "-" if result.colours is None else result.colours for solver, result in by_solver.items()}
    seconds = {f"{solver}, s": by_solver[solver].found_s for solver in TIMED if solver in by_solver}
    return {
        "instance": one.instance,
        "n": one.nodes,
        "m": one.edges,
        "clique": one.clique,
        "best": one.best_known,
        **colours,
        **seconds,
        "bar": "net + repair < DSATUR" if must_win else "net + repair <= DSATUR",
        "passed": passed,
    }
