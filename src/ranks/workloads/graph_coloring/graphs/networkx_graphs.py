"""Converting networkx graphs.

networkx is not imported: any object with its `nodes` and `edges()` is accepted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from ranks.errors import UserError
from ranks.workloads.graph_coloring.graphs.graph import Graph


def from_networkx(G: Any) -> tuple[Graph, list[Hashable]]:
    """(graph, the networkx node of each node 0..N-1), in networkx's order of nodes.

    Directed and parallel edges become one edge; attributes are ignored. Raises UserError for a
    self-loop, which cannot be coloured, and for a graph without nodes.
    """
    asked = "a networkx graph"
    try:
        names: list[Hashable] = list(G.nodes)
        edges: Iterable[tuple[Hashable, Hashable]] = G.edges()
    except (AttributeError, TypeError):
        raise UserError(asked, f"a {type(G).__name__}", "give a networkx.Graph, DiGraph or MultiGraph") from None
    if not names:
        raise UserError(asked, "a graph without nodes", "a graph to colour needs at least one")
    index = {name: number for number, name in enumerate(names)}
    pairs = np.asarray([(index[u], index[v]) for u, v in edges], dtype=np.int64).reshape(-1, 2)
    loops = pairs[pairs[:, 0] == pairs[:, 1]]
    if len(loops):
        found = f"a self-loop at node {names[int(loops[0, 0])]!r}, which no colouring can satisfy"
        raise UserError(asked, found, "G.remove_edges_from(list(networkx.selfloop_edges(G))) removes them")
    return Graph.of(len(names), pairs), names
