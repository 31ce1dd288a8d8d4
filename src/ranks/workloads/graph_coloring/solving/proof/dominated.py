"""Removing dominated nodes: a node whose neighbours are all neighbours of another node.

A dominated node can take the colour of the node that dominates it, so the graph without it needs as
many colours.

Legend: N nodes, C nodes that are left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranks.workloads.graph_coloring.classical.reduction import induced_subgraph
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints


@dataclass(frozen=True)
class WithoutDominated:
    """A graph without its dominated nodes. `nodes_C`: the numbers of its nodes in the whole graph."""

    core: Graph
    nodes_C: Ints
    removed: list[tuple[int, int]]
    """(dominated node, the node that dominates it), in the order of removal."""

    def extend(self, colours_C: Ints) -> Ints:
        """Extends a colouring of the core to the whole graph, without new conflicts."""
        colours_N = np.full(len(self.nodes_C) + len(self.removed), -1)
        colours_N[self.nodes_C] = colours_C
        for node, dominating in reversed(self.removed):
            colours_N[node] = colours_N[dominating]
        return colours_N


def without_dominated(graph: Graph) -> WithoutDominated:
    """Removes dominated nodes until there is none. Memory: n x n numbers."""
    adjacent_NN = np.zeros((graph.n, graph.n), np.float32)
    u_E, v_E = graph.edges_E2.T
    adjacent_NN[u_E, v_E] = adjacent_NN[v_E, u_E] = 1
    is_left_N, removed = np.ones(graph.n, bool), list[tuple[int, int]]()
    while True:
        only_first_NN = adjacent_NN @ (1 - adjacent_NN)  # how many neighbours of u are no neighbours of v
        pairs = (only_first_NN == 0) & (adjacent_NN == 0) & is_left_N & is_left_N[:, None]
        np.fill_diagonal(pairs, False)
        found = False
        for node in np.flatnonzero(pairs.any(1)).tolist():
            dominating = np.flatnonzero(pairs[node] & is_left_N)
            if len(dominating):
                removed.append((node, int(dominating[0])))
                is_left_N[node], found = False, True
                adjacent_NN[node], adjacent_NN[:, node] = 0, 0
        if not found:
            nodes_C = np.flatnonzero(is_left_N)
            return WithoutDominated(induced_subgraph(graph, nodes_C), nodes_C, removed)
