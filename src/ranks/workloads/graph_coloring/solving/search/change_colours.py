"""Changing the number of colours: more, to make a colouring proper; fewer, to start a search.

Legend: N nodes, K colours.
"""

from __future__ import annotations

import numpy as np

from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints


def with_more_colours(graph: Graph, colours_N: Ints) -> Ints:
    """A proper colouring int64[N]: conflicting nodes get other colours, new ones if necessary.

    Nodes lose their colours, the one with the most conflicts first, until no edge conflicts. Then
    each of them gets the lowest colour that no neighbour has. All other nodes keep their colours.
    """
    colours_N = colours_N.astype(np.int64)
    neighbours = graph.neighbours()
    u_E, v_E = graph.edges_E2.T
    conflict_E = colours_N[u_E] == colours_N[v_E]
    conflicts_N = np.bincount(graph.edges_E2[conflict_E].ravel(), minlength=graph.n)
    uncoloured: list[int] = []
    while conflicts_N.any():
        node = int(conflicts_N.argmax())
        adjacent = neighbours[node]
        conflicts_N[adjacent[colours_N[adjacent] == colours_N[node]]] -= 1
        conflicts_N[node], colours_N[node] = 0, -1
        uncoloured.append(node)
    for node in sorted(uncoloured, key=lambda v: -len(neighbours[v])):
        used = set(colours_N[neighbours[node]].tolist())
        colours_N[node] = next(c for c in range(graph.n) if c not in used)
    return colours_N


def with_fewer_colours(graph: Graph, colours_N: Ints, k: int) -> Ints:
    """A colouring int64[N] with k colours, perhaps with conflicts; the k largest classes are kept.

    Each other node gets the colour with the fewest conflicts.
    """
    _, class_N, sizes = np.unique(colours_N, return_inverse=True, return_counts=True)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    found_N = rank[class_N]
    neighbours = graph.neighbours()
    for node in np.flatnonzero(found_N >= k).tolist():
        found_N[node] = np.bincount(found_N[neighbours[node]], minlength=k)[:k].argmin()
    return found_N
