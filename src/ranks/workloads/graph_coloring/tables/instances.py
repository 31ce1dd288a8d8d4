"""Public instances: the net's ways beside the classical ones, each for the same seconds, against their bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ranks.workloads.graph_coloring.net.weights_file import LoadedNet
from ranks.workloads.graph_coloring.solving.bench import read_instances, run_all
from ranks.workloads.graph_coloring.solving.bench_report import Row
from ranks.workloads.graph_coloring.solving.best_known import read_best_known
from ranks.workloads.graph_coloring.solving.net_ways import NetWays
from ranks.workloads.graph_coloring.solving.ways import CLASSICAL

BUDGET_S, BUDGET_QUICK_S = 10.0, 1.0
BETTER_ON = ("queen8_8", "queen8_12", "queen9_9", "queen10_10", "queen11_11", "le450_15a", "DSJC125.5", "school1_nsh")
"""Where net + repair must use fewer colours than DSATUR; elsewhere it must never use more."""


def instance_rows(net: LoadedNet, folder: Path, quick: bool) -> list[dict[str, Any]]:
    """One row for each instance: colours of each way, and the bar of net + repair. Raises UserError."""
    instances = read_instances(folder, read_best_known(None))
    ways = CLASSICAL | NetWays(net.model).table()
    found = run_all(instances, ways, BUDGET_QUICK_S if quick else BUDGET_S, 1, None)
    return [_row([row for row in found if row.instance == instance.name]) for instance in instances]


def _row(found: Sequence[Row]) -> dict[str, Any]:
    one, of = found[0], {row.way: row for row in found}
    repaired, classical = of["net + repair"].colours, of["DSATUR"].colours
    assert classical is not None
    must_win = one.instance in BETTER_ON
    passed = repaired is not None and (repaired < classical if must_win else repaired <= classical)
    colours: Mapping[str, Any] = {way: "-" if row.colours is None else row.colours for way, row in of.items()}
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
