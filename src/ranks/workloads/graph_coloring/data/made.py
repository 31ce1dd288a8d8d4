"""What a family of graphs is made of: a graph, what its construction proves, and the ways to draw one.

Legend: N nodes, E undirected edges, P pairs of nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

MAX_EDGES = 8000
"""Large graphs are drawn so sparse that they stay near this."""
MOST_COLOURS = 16
"""Hidden colourings use no more."""
RANDOM_DEGREE = (3, 30)
"""Average degrees of graphs without a hidden colouring."""


@dataclass(frozen=True)
class Made:
    """A graph, and what its construction alone proves: low <= chromatic number <= high.

    `colours_N`: a proper colouring with `high` colours; none where the construction knows none, and high is n.
    """

    graph: Graph
    low: int
    high: int
    colours_N: Ints | None = None


def unproven(graph: Graph) -> Made:
    """A graph of whose chromatic number nothing is known."""
    return Made(graph, min(1, graph.n), graph.n)


@dataclass(frozen=True)
class Family:
    """`make(rng, n)` draws a graph of about n nodes, never more, for `least` <= n <= `most`.

    `share`: how often it is drawn against the other families that can make graphs of this size.
    """

    make: Callable[[np.random.Generator, int], Made]
    share: float = 1.0
    least: int = 10
    most: int = 1000


def relabelled(rng: np.random.Generator, made: Made) -> Made:
    """The same graph with its nodes in random order, so that their numbers tell nothing."""
    new_N = rng.permutation(made.graph.n)
    graph = Graph.of(made.graph.n, new_N[made.graph.edges_E2])
    colours_N = None if made.colours_N is None else made.colours_N[np.argsort(new_N)]
    return Made(graph, made.low, made.high, colours_N)


def random_graph(rng: np.random.Generator, n: int, num_edges: int) -> Graph:
    """Erdos-Renyi G(n, m): `num_edges` different edges, all sets equally likely."""
    total = n * (n - 1) // 2
    ids_E = rng.choice(total, size=min(num_edges, total), replace=False, shuffle=False)
    # pair i of the list (1, 0) (2, 0) (2, 1) (3, 0) ...
    v_E = ((1 + np.sqrt(8.0 * ids_E + 1)) / 2).astype(np.int64)
    return Graph.of(n, np.stack([ids_E - v_E * (v_E - 1) // 2, v_E], 1))


def partite_graph(rng: np.random.Generator, class_N: Ints, num_edges: int, clique: bool) -> Made:
    """`num_edges` random edges between classes 0..k-1; with `clique` one node of each class is joined to the others."""
    n, k = len(class_N), int(class_N.max()) + 1
    u_P, v_P = np.triu_indices(n, 1)
    across = np.flatnonzero(class_N[u_P] != class_N[v_P])
    picked = rng.choice(across, size=min(num_edges, len(across)), replace=False, shuffle=False)
    pairs_P2 = np.stack([u_P[picked], v_P[picked]], 1)
    if not clique:
        return Made(Graph.of(n, pairs_P2), 1, k, class_N)
    chosen = np.array([rng.choice(np.flatnonzero(class_N == c)) for c in range(k)])
    joined = chosen[np.stack(np.triu_indices(k, 1), 1)]
    return Made(Graph.of(n, np.concatenate([pairs_P2, joined])), k, k, class_N)


def threshold_degree(k: int) -> float:
    """Average degree near which random graphs stop being k-colourable: 2 k ln k - ln k (Achlioptas & Naor 2005)."""
    return (2 * k - 1) * math.log(k)


def edge_limit(n: int) -> float:
    """Edges that a graph of n nodes may have: half of all pairs, but never much above MAX_EDGES."""
    return min(n * (n - 1) / 4, MAX_EDGES)


def hidden_colours(rng: np.random.Generator, n: int) -> int:
    """A number of colours from 3 on, few enough that a graph at its threshold stays within the limit of edges."""
    most = 3
    while most < MOST_COLOURS and threshold_degree(most + 1) * n / 2 <= edge_limit(n):
        most += 1
    return int(rng.integers(3, most + 1))


def random_degree(rng: np.random.Generator, n: int) -> float:
    """An average degree that leaves the limit of edges, small ones more often."""
    least, most = RANDOM_DEGREE
    return math.exp(rng.uniform(math.log(least), math.log(min(most, max(least, 2 * edge_limit(n) / n)))))
