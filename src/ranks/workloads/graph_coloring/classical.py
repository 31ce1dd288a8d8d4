"""DSATUR, by its own name: the baseline that stands beside the net."""

from __future__ import annotations

import numpy as np

from ranks.workloads.graph_coloring.graphs import Graph, Ints


def dsatur(graph: Graph) -> Ints:
    """A proper colouring int64[N] (Brelaz 1979): always the node whose neighbours show the most colours goes next.

    Ties go to the larger degree among the uncoloured nodes, then to the lower node, which takes its lowest free colour.
    """
    neighbours = graph.neighbours()
    near_degree = graph.degrees()
    colour = np.full(graph.n, -1, dtype=np.int64)
    saturation = np.zeros(graph.n, dtype=np.int64)
    seen = [set[int]() for _ in range(graph.n)]
    for _ in range(graph.n):
        rank = np.where(colour < 0, saturation * (graph.n + 1) + near_degree, -1)
        node = int(rank.argmax())
        c = next(c for c in range(graph.n) if c not in seen[node])
        colour[node] = c
        near = neighbours[node]
        near_degree[near] -= 1
        for v in near.tolist():
            if c not in seen[v]:
                seen[v].add(c)
                saturation[v] += 1
    return colour


def num_colours(colours_N: Ints) -> int:
    """How many different colours are used."""
    return len(np.unique(colours_N))
