"""What need not be searched: nodes that can be coloured last, whatever the others get; parts that do not touch.

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
class Reduced:
    """`core`: the k-core, where each node has k neighbours or more; `nodes_C`: its nodes, as numbered in `graph`."""

    graph: Graph
    k: int
    core: Graph
    nodes_C: Ints
    peeled_P: Ints
    """The other nodes, in the order in which they were taken away."""

    def extend(self, core_colours_C: npt.ArrayLike) -> Ints:
        """int64[N]: colours 0..k-1 of the core, and of the others, last peeled first, the lowest that is free.

        No conflict is added. ValueError where the colours are not one in 0..k-1 for each node of the core.
        """
        colours_C = np.asarray(core_colours_C, dtype=np.int64)
        if colours_C.shape != (self.core.n,) or (self.core.n and not 0 <= colours_C.min() <= colours_C.max() < self.k):
            raise ValueError(f"the core has {self.core.n} nodes with one colour in 0..{self.k - 1} for each")
        colours_N = np.full(self.graph.n, -1)
        colours_N[self.nodes_C] = colours_C
        colour_in_order(*self.graph.csr(), self.peeled_P[::-1].copy(), colours_N)
        return colours_N


def reduce(graph: Graph, k: int) -> Reduced:
    """Takes away nodes of degree below k, again and again: the graph has a k-colouring where the core has one."""
    peeled_P = _peel(*graph.csr(), k)
    keep_N = np.ones(graph.n, np.bool_)
    keep_N[peeled_P] = False
    nodes_C = np.flatnonzero(keep_N)
    return Reduced(graph, k, induced(graph, nodes_C), nodes_C, peeled_P)


def components(graph: Graph) -> list[Ints]:
    """The nodes of each connected part, in rising order; the parts by their lowest node."""
    part_N = _parts(*graph.csr())
    order = np.argsort(part_N, kind="stable")
    return np.split(order, np.cumsum(np.bincount(part_N))[:-1]) if graph.n else []


def induced(graph: Graph, nodes_C: Ints) -> Graph:
    """The graph between nodes given in rising order, which are renamed 0..C-1."""
    place_N = np.full(graph.n, -1)
    place_N[nodes_C] = np.arange(len(nodes_C))
    edges_E2 = place_N[graph.edges_E2]
    return Graph(len(nodes_C), edges_E2[(edges_E2 >= 0).all(1)])


@kernel("int64[::1](int32[::1], int32[::1], int64)")
def _peel(starts: Ints32, near: Ints32, k: int) -> Ints:
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
            u = near[i]
            if degree_N[u] == k:
                peeled[num_peeled] = u
                num_peeled += 1
            degree_N[u] -= 1
    return peeled[:num_peeled].copy()


@kernel("int64[::1](int32[::1], int32[::1])")
def _parts(starts: Ints32, near: Ints32) -> Ints:
    n = len(starts) - 1
    part_N, waiting, num_parts = np.full(n, -1), np.zeros(n, np.int64), 0
    for root in range(n):
        if part_N[root] >= 0:
            continue
        part_N[root], waiting[0], num_waiting = num_parts, root, 1
        while num_waiting > 0:
            num_waiting -= 1
            v = waiting[num_waiting]
            for i in range(starts[v], starts[v + 1]):
                if part_N[near[i]] < 0:
                    part_N[near[i]] = num_parts
                    waiting[num_waiting] = near[i]
                    num_waiting += 1
        num_parts += 1
    return part_N
