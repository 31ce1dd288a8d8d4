"""Reducing a graph before a search, to its k-core and to connected components.

The nodes outside the k-core can be coloured last; the components are independent.

Legend: N nodes, C nodes of the core, P peeled nodes, D directed edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranks.jit import kernel
from ranks.workloads.graph_coloring.classical.greedy import colour_in_order
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32


@dataclass(frozen=True)
class GraphReduction:
    """The k-core of a graph, in which each node has k neighbours or more, and the other nodes.

    `nodes_C`: the numbers in `graph` of the nodes of `core`.
    """

    graph: Graph
    k: int
    core: Graph
    nodes_C: Ints
    peeled_P: Ints
    """The nodes outside of the core, in the order of their removal."""

    def extend(self, core_colours_C: npt.ArrayLike) -> Ints:
        """Extends a colouring of the core to the whole graph, int64[N], without new conflicts.

        The colours are 0..k-1. The peeled nodes get the lowest free colour, the last removed first.
        Raises ValueError if the colours are not one in 0..k-1 for each node of the core.
        """
        colours_C = np.asarray(core_colours_C, dtype=np.int64)
        if colours_C.shape != (self.core.n,) or (self.core.n and not 0 <= colours_C.min() <= colours_C.max() < self.k):
            raise ValueError(f"the core has {self.core.n} nodes with one colour in 0..{self.k - 1} for each")
        colours_N = np.full(self.graph.n, -1)
        colours_N[self.nodes_C] = colours_C
        colour_in_order(*self.graph.csr(), self.peeled_P[::-1].copy(), colours_N)
        return colours_N


def reduce_to_core(graph: Graph, k: int) -> GraphReduction:
    """The k-core: nodes of degree below k are removed until none is left.

    The graph has a k-colouring exactly if its k-core has one.
    """
    peeled_P = _peel(*graph.csr(), k)
    keep_N = np.ones(graph.n, np.bool_)
    keep_N[peeled_P] = False
    nodes_C = np.flatnonzero(keep_N)
    return GraphReduction(graph, k, induced_subgraph(graph, nodes_C), nodes_C, peeled_P)


def connected_components(graph: Graph) -> list[Ints]:
    """The sorted nodes of each connected component; components are ordered by their lowest node."""
    component_N = _components(*graph.csr())
    order = np.argsort(component_N, kind="stable")
    return np.split(order, np.cumsum(np.bincount(component_N))[:-1]) if graph.n else []


def induced_subgraph(graph: Graph, nodes_C: Ints) -> Graph:
    """The subgraph on some nodes, given sorted; they are renumbered 0..C-1."""
    new_N = np.full(graph.n, -1)
    new_N[nodes_C] = np.arange(len(nodes_C))
    edges_E2 = new_N[graph.edges_E2]
    return Graph(len(nodes_C), edges_E2[(edges_E2 >= 0).all(1)])


@kernel("int64[::1](int32[::1], int32[::1], int64)")
def _peel(starts: Ints32, neighbours: Ints32, k: int) -> Ints:
    """The nodes outside of the k-core, in the order of their removal (a queue)."""
    n = len(starts) - 1
    degree_N, peeled, num_peeled = np.zeros(n, np.int64), np.zeros(n, np.int64), 0
    for v in range(n):
        degree_N[v] = starts[v + 1] - starts[v]
        if degree_N[v] < k:
            peeled[num_peeled] = v
            num_peeled += 1
    done = 0
    while done < num_peeled:
        v = peeled[done]
        done += 1
        for i in range(starts[v], starts[v + 1]):
            u = neighbours[i]
            if degree_N[u] == k:  # it falls below k now
                peeled[num_peeled] = u
                num_peeled += 1
            degree_N[u] -= 1
    return peeled[:num_peeled].copy()


@kernel("int64[::1](int32[::1], int32[::1])")
def _components(starts: Ints32, neighbours: Ints32) -> Ints:
    """int64[N]: the number of each node's component, by depth-first search with a stack."""
    n = len(starts) - 1
    component_N, stack, num_components = np.full(n, -1), np.zeros(n, np.int64), 0
    for root in range(n):
        if component_N[root] >= 0:
            continue
        component_N[root], stack[0], stack_size = num_components, root, 1
        while stack_size > 0:
            stack_size -= 1
            v = stack[stack_size]
            for i in range(starts[v], starts[v + 1]):
                if component_N[neighbours[i]] < 0:
                    component_N[neighbours[i]] = num_components
                    stack[stack_size] = neighbours[i]
                    stack_size += 1
        num_components += 1
    return component_N
