"""`ranks prove table graph-coloring`: hard graphs, the chromatic number, unseen families, public instances if given."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ranks.workloads.graph_coloring.net.weights_file import load_net
from ranks.workloads.graph_coloring.tables.chromatic import chromatic_rows, held_out
from ranks.workloads.graph_coloring.tables.hard import FACTS, hard_rows
from ranks.workloads.graph_coloring.tables.instances import instance_table
from ranks.workloads.graph_coloring.tables.training_graphs import read_training_graphs
from ranks.workloads.graph_coloring.tables.unseen import TRIES, unseen_rows


def table(quick: bool = False, instances: Path | None = None) -> dict[str, Any]:
    """{"tables", "passed", "facts"} of the shipped net, ready for JSON, and with `instances`, a folder of them,
    "instances_csv", a line for each row of the bench. `quick`: fewer graphs, the same comparison."""
    net, training = load_net(None), read_training_graphs()
    seen, unseen = held_out(quick, training)
    of_seen, of_unseen = chromatic_rows(net.model, training, seen, unseen)
    tables: dict[str, list[dict[str, Any]]] = {
        "Hard 3-colourable graphs": [asdict(row) for row in hard_rows(net.model, quick)],
        "Chromatic number, families of the training": [asdict(row) for row in of_seen],
        "Chromatic number, unseen families": [asdict(row) for row in of_unseen],
        f"Colours on unseen families and sizes, as many as the chromatic number, {TRIES} tries": [
            asdict(row) for row in unseen_rows(net.model, unseen.stored, quick)
        ],
    }
    facts = {"weights": net.name, "weights_sha256": net.sha256, **FACTS}
    dropped = {f"of {kind} families": part.dropped for kind, part in (("the training's", seen), ("unseen", unseen))}
    facts["left out as isomorphic to a training graph"] = ", ".join(f"{n} {kind}" for kind, n in dropped.items())
    found: dict[str, Any] = {"tables": tables, "facts": facts}
    if instances is not None:
        measured = instance_table(net, instances, quick)
        tables["Public instances, fewest colours"] = measured.rows
        facts |= measured.facts
        found["instances_csv"] = measured.csv
    found["passed"] = all(row["passed"] is not False for rows in tables.values() for row in rows if "passed" in row)
    return found
