"""The tables of `ranks prove table graph-coloring`: hard graphs, chromatic numbers, unseen families
and, on request, public instances."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ranks.workloads.graph_coloring.net.weights_file import LoadedNet, load_net
from ranks.workloads.graph_coloring.tables.chromatic import MAX_NODES, chromatic_rows, held_out, net_estimate
from ranks.workloads.graph_coloring.tables.hard import SETTINGS, SIZES, hard_rows
from ranks.workloads.graph_coloring.tables.instances import instance_table
from ranks.workloads.graph_coloring.tables.training_graphs import read_training_graphs
from ranks.workloads.graph_coloring.tables.unseen import TRIES, unseen_rows


@dataclass(frozen=True)
class TableSizes:
    """How much the tables measure."""

    hard: int
    """Hard graphs of each size."""
    chromatic: int
    """Graphs of training families, and as many of unseen families, before graphs are excluded."""
    unseen: int
    """Graphs of each unseen family to colour."""
    budget_s: float
    """Seconds for each solver on each public instance."""
    hard_nodes: tuple[int, ...] = SIZES
    max_nodes: int = MAX_NODES


FULL = TableSizes(hard=300, chromatic=1000, unseen=20, budget_s=10.0)
QUICK = TableSizes(hard=40, chromatic=400, unseen=2, budget_s=1.0)
"""Methods differ by about two points in the chromatic table; fewer graphs would not show it."""


def table(quick: bool = False, instances: Path | None = None, net: LoadedNet | None = None) -> dict[str, Any]:
    """Measure the network and the classical methods: {"tables", "passed", "facts"}, ready for JSON.

    `quick`: the same comparison on fewer graphs. `instances`: a folder of graph files; adds a
    table, and "instances_csv", the rows of the bench. `net`: by default the shipped one.
    """
    return make_table(QUICK if quick else FULL, instances, net or load_net(None))


def make_table(sizes: TableSizes, instances: Path | None, net: LoadedNet) -> dict[str, Any]:
    """The result of `table` with the given numbers of graphs."""
    training = read_training_graphs()
    seen, unseen = held_out(sizes.chromatic, training, sizes.max_nodes)
    of_seen, of_unseen = chromatic_rows(partial(net_estimate, net.model), training, seen, unseen)
    tables: dict[str, list[dict[str, Any]]] = {
        "Hard 3-colourable graphs": [asdict(row) for row in hard_rows(net.model, sizes.hard, sizes.hard_nodes)],
        "Chromatic number, training families": [asdict(row) for row in of_seen],
        "Chromatic number, unseen families": [asdict(row) for row in of_unseen],
        f"Graphs of unseen families coloured with the chromatic number of colours, {TRIES} tries": [
            asdict(row) for row in unseen_rows(net.model, unseen.dataset, sizes.unseen)
        ],
    }
    facts = {"weights": net.name, "weights_sha256": net.sha256, **SETTINGS}
    excluded = {f"of {kind} families": part.excluded for kind, part in (("training", seen), ("unseen", unseen))}
    facts["left out as isomorphic to a training graph"] = ", ".join(f"{n} {kind}" for kind, n in excluded.items())
    found: dict[str, Any] = {"tables": tables, "facts": facts}
    if instances is not None:
        measured = instance_table(net, instances, sizes.budget_s)
        tables["Public instances, fewest colours"] = measured.rows
        facts |= measured.facts
        found["instances_csv"] = measured.csv
    found["passed"] = all(row["passed"] is not False for rows in tables.values() for row in rows if "passed" in row)
    return found
