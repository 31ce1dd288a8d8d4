"""Graphs that networkx holds. networkx itself is not imported: whatever offers its `nodes` and `edges()` is taken."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.graph import Graph


def from_networkx(G: Any) -> tuple[Graph, list[Hashable]]:
    """(graph, name of each of its nodes 0..N-1) of a networkx graph, in the order of its nodes.

    Directed and parallel edges are folded into one; attributes are left aside. Raises UserError on a self-loop, which
    cannot be coloured, and on a graph without nodes.
    """
    asked = "a networkx graph"
    try:
        names: list[Hashable] = list(G.nodes)
        edges: Iterable[tuple[Hashable, Hashable]] = G.edges()
    except (AttributeError, TypeError):
        raise UserError(asked, f"a {type(G).__name__}", "give a networkx.Graph, or one of its kin") from None
    if not names:
        raise UserError(asked, "a graph without nodes", "a graph to colour needs at least one")
    place = {name: number for number, name in enumerate(names)}
    pairs = np.asarray([(place[u], place[v]) for u, v in edges], dtype=np.int64).reshape(-1, 2)
    loops = pairs[pairs[:, 0] == pairs[:, 1]]
    if len(loops):
        found = f"a self-loop at node {names[int(loops[0, 0])]!r}, which no colouring can satisfy"
        raise UserError(asked, found, "G.remove_edges_from(list(networkx.selfloop_edges(G))) drops them")
    return Graph.of(len(names), pairs), names
