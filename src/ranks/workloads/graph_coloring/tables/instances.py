"""Public instances: the net's ways beside the classical ones, each for the same seconds, against their bars.

A bar that net + repair meets is the net's merit only where the same repair from random colours does worse: that way
stands beside it, and where the net wins, ties and loses against it is told by name.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ranks.workloads.graph_coloring.net.weights_file import LoadedNet
from ranks.workloads.graph_coloring.solving.bench_report import BenchResult, net_comparison
from ranks.workloads.graph_coloring.solving.bench_run import read_instances, run_all
from ranks.workloads.graph_coloring.solving.best_known import read_best_known
from ranks.workloads.graph_coloring.solving.net_solvers import NetSolvers
from ranks.workloads.graph_coloring.solving.solvers import CLASSICAL_SOLVERS

BUDGET_S, BUDGET_QUICK_S = 10.0, 1.0
BETTER_ON = ("queen8_8", "queen8_12", "queen9_9", "queen10_10", "queen11_11", "le450_15a", "DSJC125.5", "school1_nsh")
"""Where net + repair must use fewer colours than DSATUR; elsewhere it must never use more."""


@dataclass(frozen=True)
class InstanceTable:
    """`rows`: one for each instance, colours of each way and the bar of net + repair. `facts`: how it was measured, and
    what the net itself is worth. `csv`: all that was measured, a line for each instance and way, names in the first."""

    rows: list[dict[str, Any]]
    facts: dict[str, Any]
    csv: list[str]


def instance_table(net: LoadedNet, folder: Path, quick: bool) -> InstanceTable:
    """All instances of a folder in every way. Raises UserError."""
    instances = read_instances(folder, read_best_known(None))
    budget_s, csv = BUDGET_QUICK_S if quick else BUDGET_S, io.StringIO()
    found = run_all(instances, CLASSICAL_SOLVERS | NetSolvers(net.model).by_name(), budget_s, 1, csv)
    rows = [_row([row for row in found if row.instance == instance.name]) for instance in instances]
    facts = {"instances: seconds for each way": budget_s, "instances: torch threads": torch.get_num_threads()}
    return InstanceTable(rows, facts | net_comparison(found), csv.getvalue().splitlines())


def _row(found: Sequence[BenchResult]) -> dict[str, Any]:
    one, of = found[0], {row.solver: row for row in found}
    repaired, classical = of["net + repair"].colours, of["DSATUR"].colours
    assert classical is not None
    must_win = one.instance in BETTER_ON
    passed = repaired is not None and (repaired < classical if must_win else repaired <= classical)
    colours = {way: "-" if row.colours is None else row.colours for way, row in of.items()}
    seconds = {f"{way}, s": row.found_s for way, row in of.items() if way in ("TabuCol", "net + TabuCol")}
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
