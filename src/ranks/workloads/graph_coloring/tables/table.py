"""`ranks prove table graph-coloring`: hard graphs, the chromatic number, and public instances where they are given."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ranks.workloads.graph_coloring.net.weights_file import LoadedNet, load_net
from ranks.workloads.graph_coloring.tables.chromatic import chromatic_rows
from ranks.workloads.graph_coloring.tables.hard import FACTS, hard_rows
from ranks.workloads.graph_coloring.tables.instances import instance_rows


def table(quick: bool = False, instances: Path | None = None, net: LoadedNet | None = None) -> dict[str, Any]:
    """{"tables", "passed", "facts"}, ready for JSON. `quick`: fewer graphs, the same comparison. `instances`: a folder
    of public instances. `net`: the shipped one without it."""
    net = net if net is not None else load_net(None)
    seen, unseen = chromatic_rows(net.model, quick)
    tables: dict[str, list[dict[str, Any]]] = {
        "Hard 3-colourable graphs": [asdict(row) for row in hard_rows(net.model, quick)],
        "Chromatic number, families of the training": [asdict(row) for row in seen],
        "Chromatic number, unseen families": [asdict(row) for row in unseen],
    }
    if instances is not None:
        tables["Public instances, fewest colours"] = instance_rows(net, instances, quick)
    return {
        "tables": tables,
        "passed": all(row["passed"] is not False for rows in tables.values() for row in rows),
        "facts": {"weights": net.name, "weights_sha256": net.sha256, **FACTS},
    }
