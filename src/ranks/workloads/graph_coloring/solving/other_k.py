"""From a colouring to one with another number of colours: more, so that it is proper; fewer, to search on from.

Legend: N nodes, K colours.
"""

from __future__ import annotations

import numpy as np

from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints


def with_more_colours(graph: Graph, colours_N: Ints) -> Ints:
    """int64[N]: nodes are taken out until no edge conflicts, the one in most conflicts first; then each of them gets
    the lowest colour that its neighbours leave, a new one where they leave none. The other nodes keep their colours."""
    colours_N = colours_N.astype(np.int64)
    neighbours = graph.neighbours()
    u_E, v_E = graph.edges_E2.T
    clash_E = colours_N[u_E] == colours_N[v_E]
    conflicts_N = np.bincount(graph.edges_E2[clash_E].ravel(), minlength=graph.n)
    taken: list[int] = []
    while conflicts_N.any():
        node = int(conflicts_N.argmax())
        near = neighbours[node]
        conflicts_N[near[colours_N[near] == colours_N[node]]] -= 1
        conflicts_N[node], colours_N[node] = 0, -1
        taken.append(node)
    for node in sorted(taken, key=lambda v: -len(neighbours[v])):
        used = set(colours_N[neighbours[node]].tolist())
        colours_N[node] = next(c for c in range(graph.n) if c not in used)
    return colours_N


def with_fewer_colours(graph: Graph, colours_N: Ints, k: int) -> Ints:
    """int64[N], below k: the k largest classes stay; each other node gets the colour that conflicts least."""
    _, class_N, sizes = np.unique(colours_N, return_inverse=True, return_counts=True)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    found_N = rank[class_N]
    neighbours = graph.neighbours()
    for node in np.flatnonzero(found_N >= k).tolist():
        found_N[node] = np.bincount(found_N[neighbours[node]], minlength=k)[:k].argmin()
    return found_N
