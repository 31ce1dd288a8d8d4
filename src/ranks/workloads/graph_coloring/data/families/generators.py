"""Building blocks of the graph families: random graphs, and the bounds that a construction proves.

Legend: N nodes, E undirected edges, P pairs of nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

MAX_EDGES = 8000
"""Large graphs are so sparse that they have about this many edges at most."""
MAX_COLOURS = 16
"""The maximum number of colours of a planted colouring."""
RANDOM_DEGREE = (3, 30)
"""Range of the average degree of graphs without a planted colouring."""


@dataclass(frozen=True)
class GeneratedGraph:
    """A graph, and the bounds that its construction proves: low <= chromatic number <= high.

    `colours_N`: a proper colouring with `high` colours; None if the construction gives none, then
    high is n.
    """

    graph: Graph
    low: int
    high: int
    colours_N: Ints | None = None


def without_bounds(graph: Graph) -> GeneratedGraph:
    """A graph whose construction proves nothing about its chromatic number."""
    return GeneratedGraph(graph, min(1, graph.n), graph.n)


@dataclass(frozen=True)
class Family:
    """A graph family: `generate(rng, n)` returns a random graph of about n nodes, never more.

    n must be in `min_nodes`..`max_nodes`. `weight`: how often the family is chosen, relative to the
    other families that have graphs of this size.
    """

    generate: Callable[[np.random.Generator, int], GeneratedGraph]
    weight: float = 1.0
    min_nodes: int = 10
    max_nodes: int = 1000


def relabelled(rng: np.random.Generator, generated: GeneratedGraph) -> GeneratedGraph:
    """The same graph, its nodes renumbered at random, so that the numbers carry no information."""
    new_N = rng.permutation(generated.graph.n)
    graph = Graph.of(generated.graph.n, new_N[generated.graph.edges_E2])
    colours_N = None if generated.colours_N is None else generated.colours_N[np.argsort(new_N)]
    return GeneratedGraph(graph, generated.low, generated.high, colours_N)


def random_graph(rng: np.random.Generator, n: int, num_edges: int) -> Graph:
    """An Erdos-Renyi graph G(n, m): `num_edges` different edges, each set of edges equally likely."""
    total = n * (n - 1) // 2
    ids_E = rng.choice(total, size=min(num_edges, total), replace=False, shuffle=False)
    # pair number i of the list (1, 0) (2, 0) (2, 1) (3, 0) ...
    v_E = ((1 + np.sqrt(8.0 * ids_E + 1)) / 2).astype(np.int64)
    return Graph.of(n, np.stack([ids_E - v_E * (v_E - 1) // 2, v_E], 1))


def partite_graph(rng: np.random.Generator, class_N: Ints, num_edges: int, clique: bool) -> GeneratedGraph:
    """A random k-partite graph: `num_edges` edges between the classes 0..k-1 of `class_N`.

    With `clique`, one node of each class is joined to those of the other classes; then the
    chromatic number is k.
    """
    n, k = len(class_N), int(class_N.max()) + 1
    u_P, v_P = np.triu_indices(n, 1)
    across = np.flatnonzero(class_N[u_P] != class_N[v_P])
    picked = rng.choice(across, size=min(num_edges, len(across)), replace=False, shuffle=False)
    pairs_P2 = np.stack([u_P[picked], v_P[picked]], 1)
    if not clique:
        return GeneratedGraph(Graph.of(n, pairs_P2), 1, k, class_N)
    chosen = np.array([rng.choice(np.flatnonzero(class_N == c)) for c in range(k)])
    joined = chosen[np.stack(np.triu_indices(k, 1), 1)]
    return GeneratedGraph(Graph.of(n, np.concatenate([pairs_P2, joined])), k, k, class_N)


def threshold_degree(k: int) -> float:
    """The average degree above which random graphs are rarely k-colourable.

    2 k ln k - ln k (Achlioptas & Naor 2005).
    """
    return (2 * k - 1) * math.log(k)


def edge_limit(n: int) -> float:
    """The maximum number of edges of a graph of n nodes: half of all pairs, and at most MAX_EDGES."""
    return min(n * (n - 1) / 4, MAX_EDGES)


def random_num_colours(rng: np.random.Generator, n: int) -> int:
    """A random number of colours from 3 up, such that `edge_limit` allows graphs at the threshold."""
    highest = 3
    while highest < MAX_COLOURS and threshold_degree(highest + 1) * n / 2 <= edge_limit(n):
        highest += 1
    return int(rng.integers(3, highest + 1))


def random_degree(rng: np.random.Generator, n: int) -> float:
    """A random average degree within `edge_limit`, log-uniform: small degrees are more frequent."""
    lowest, highest = RANDOM_DEGREE
    return math.exp(rng.uniform(math.log(lowest), math.log(min(highest, max(lowest, 2 * edge_limit(n) / n)))))
