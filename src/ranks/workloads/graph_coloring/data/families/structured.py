"""Structured graph families: queen graphs, Mycielskians, Kneser graphs.

Legend: N nodes, E undirected edges.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ranks.workloads.graph_coloring.data.families.generators import (
    MAX_EDGES,
    GeneratedGraph,
    partite_graph,
    without_bounds,
)
from ranks.workloads.graph_coloring.graphs.graph import Graph

MAX_SQUARES_RATIO = 1.2
"""The board has up to this many squares for each square that becomes a node."""
MAX_ASPECT_RATIO = 1.6
"""The maximum ratio of the sides of a board, before rounding."""
MIN_MYCIELSKI_BASE = 4
"""The smallest graph to which the Mycielskian is applied has this many nodes."""
MAX_SUBSETS_RATIO = 4
"""The whole Kneser graph has up to this many times the nodes of the subgraph that is taken from it."""
MAX_ELEMENTS = 50


def queen(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A queen graph: some squares of a board, adjacent if a queen can move between them."""
    side = math.sqrt(n)
    rows = round(rng.uniform(side / math.sqrt(MAX_ASPECT_RATIO), side))
    columns = max(math.ceil(n / rows), round(n * rng.uniform(1, MAX_SQUARES_RATIO) / rows))
    row_N, column_N = np.divmod(rng.choice(rows * columns, size=n, replace=False), columns)
    lines = (row_N, column_N, row_N + column_N, row_N - column_N)
    same_NN = np.logical_or.reduce([line[:, None] == line[None, :] for line in lines])
    return without_bounds(Graph.of(n, np.argwhere(np.triu(same_NN, 1))))


def mycielskian(generated: GeneratedGraph) -> GeneratedGraph:
    """The Mycielskian (Mycielski 1955): one colour more is needed, with no larger clique.

    Node v gets a copy n + v with the neighbours and the colour of v; all copies are joined to the
    new node 2n. (The clique of a single node is the exception: it grows to 2.)
    """
    assert generated.colours_N is not None
    n, (u_E, v_E) = generated.graph.n, generated.graph.edges_E2.T
    copy_N = np.arange(n, 2 * n)
    ends = [(u_E, v_E), (u_E, v_E + n), (u_E + n, v_E), (copy_N, np.full(n, 2 * n))]
    graph = Graph.of(2 * n + 1, np.concatenate([np.stack(pair, 1) for pair in ends]))
    colours_2N = np.concatenate([generated.colours_N, generated.colours_N, [generated.high]])
    return GeneratedGraph(graph, generated.low + 1, generated.high + 1, colours_2N)


def mycielski(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """The Mycielskian, applied several times to a random graph with known chromatic number."""
    max_times = next(
        t for t in itertools.count(1) if base_nodes(n, t + 1) < MIN_MYCIELSKI_BASE or base_edges(n, t + 1) < n >> t
    )
    times = int(rng.integers(1, max_times + 1))
    base = base_nodes(n, times)
    k = int(rng.integers(2, 5))
    num_edges = round(rng.uniform(1, 3) * base)
    generated = partite_graph(
        rng, rng.permutation(np.arange(base) % k), min(num_edges, base_edges(n, times)), clique=True
    )
    for _ in range(times):
        generated = mycielskian(generated)
    return generated


def base_nodes(n: int, times: int) -> int:
    """The nodes of a graph that has about n nodes, never more, after `times` Mycielskians."""
    return ((n + 1) >> times) - 1


def base_edges(n: int, times: int) -> int:
    """The maximum number of edges of that graph.

    The Mycielskian of a graph with m edges and n nodes has 3 m + n edges.
    """
    sizes = [((base_nodes(n, times) + 1) << i) - 1 for i in range(times)]
    return (MAX_EDGES - sum(size * 3 ** (times - 1 - i) for i, size in enumerate(sizes))) // 3**times


def kneser_graphs(n: int) -> list[tuple[int, int]]:
    """(a, b) of the Kneser graphs K(a, b) with n..4n nodes that are sparse enough.

    n of their nodes have at most MAX_EDGES edges on average.
    """
    found: list[tuple[int, int]] = []
    for a in range(5, MAX_ELEMENTS):
        for b in range(2, (a - 1) // 2 + 1):
            total = math.comb(a, b)
            share = n / total
            if 1 / MAX_SUBSETS_RATIO <= share <= 1 and total * math.comb(a - b, b) / 2 * share**2 <= MAX_EDGES:
                found.append((a, b))
    return found


def kneser(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """n nodes of a Kneser graph K(a, b): sets of b out of a elements, adjacent if disjoint.

    The whole graph has chromatic number a - 2b + 2 (Lovasz 1978): the colour of a set is its least
    element, and all sets within the last 2b - 1 elements have the same colour, because any two of
    them intersect.
    """
    choices = kneser_graphs(n)
    a, b = choices[int(rng.integers(len(choices)))]
    subsets = np.array(list(itertools.combinations(range(a), b)))
    kept_NB = subsets[rng.permutation(len(subsets))[:n]]
    member_NA = np.zeros((n, a), dtype=np.int64)
    member_NA[np.arange(n)[:, None], kept_NB] = 1
    disjoint_NN = member_NA @ member_NA.T == 0
    k = a - 2 * b + 2
    low = k if n == len(subsets) else 1
    return GeneratedGraph(Graph.of(n, np.argwhere(np.triu(disjoint_NN, 1))), low, k, np.minimum(kept_NB[:, 0], k - 1))
