"""Families with structure: queens on boards, Mycielskians, Kneser graphs.

Legend: N nodes, E undirected edges.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ranks.workloads.graph_coloring.data.made import MAX_EDGES, Made, partite_graph, unproven
from ranks.workloads.graph_coloring.graphs.graph import Graph

MOST_SQUARES_MORE = 1.2
"""Boards have up to so many squares for each that is kept."""
LONGEST_BOARD = 1.6
"""A board is up to so many times its shorter side long, before it is rounded."""
MYCIELSKI_BASE = 4
"""Nodes of the smallest graph that Mycielskians are made of."""
MOST_SUBSETS = 4
"""A Kneser graph that nodes are taken from has up to so many times as many."""
MOST_ELEMENTS = 50


def queen(rng: np.random.Generator, n: int) -> Made:
    """Squares of a rectangular board, some taken away; joined where a queen moves from one to the other."""
    side = math.sqrt(n)
    rows = round(rng.uniform(side / math.sqrt(LONGEST_BOARD), side))
    columns = max(math.ceil(n / rows), round(n * rng.uniform(1, MOST_SQUARES_MORE) / rows))
    row_N, column_N = np.divmod(rng.choice(rows * columns, size=n, replace=False), columns)
    lines = (row_N, column_N, row_N + column_N, row_N - column_N)
    same_NN = np.logical_or.reduce([line[:, None] == line[None, :] for line in lines])
    return unproven(Graph.of(n, np.argwhere(np.triu(same_NN, 1))))


def mycielskian(made: Made) -> Made:
    """The Mycielskian (Mycielski 1955): one colour more is needed, no larger clique arises (from 2 nodes on).

    Node v gets a twin n + v with the neighbours and the colour of v; all twins are joined to the new node 2n.
    """
    assert made.colours_N is not None
    n, (u_E, v_E) = made.graph.n, made.graph.edges_E2.T
    twin_N = np.arange(n, 2 * n)
    ends = [(u_E, v_E), (u_E, v_E + n), (u_E + n, v_E), (twin_N, np.full(n, 2 * n))]
    graph = Graph.of(2 * n + 1, np.concatenate([np.stack(pair, 1) for pair in ends]))
    return Made(graph, made.low + 1, made.high + 1, np.concatenate([made.colours_N, made.colours_N, [made.high]]))


def mycielski(rng: np.random.Generator, n: int) -> Made:
    """Mycielskians of Mycielskians of a random graph with known chromatic number."""
    most = next(t for t in itertools.count(1) if base_nodes(n, t + 1) < MYCIELSKI_BASE or base_edges(n, t + 1) < n >> t)
    times = int(rng.integers(1, most + 1))
    base = base_nodes(n, times)
    k = int(rng.integers(2, 5))
    num_edges = round(rng.uniform(1, 3) * base)
    made = partite_graph(rng, rng.permutation(np.arange(base) % k), min(num_edges, base_edges(n, times)), clique=True)
    for _ in range(times):
        made = mycielskian(made)
    return made


def base_nodes(n: int, times: int) -> int:
    """Nodes of the graph whose Mycielskian, taken so many times, has n nodes or hardly fewer."""
    return ((n + 1) >> times) - 1


def base_edges(n: int, times: int) -> int:
    """Edges that it may have: a Mycielskian has three times the edges, and the nodes in addition."""
    sizes = [((base_nodes(n, times) + 1) << i) - 1 for i in range(times)]
    return (MAX_EDGES - sum(size * 3 ** (times - 1 - i) for i, size in enumerate(sizes))) // 3**times


def kneser_graphs(n: int) -> list[tuple[int, int]]:
    """(a, b) of the Kneser graphs with n..4n nodes that leave few enough edges to n of their nodes."""
    found: list[tuple[int, int]] = []
    for a in range(5, MOST_ELEMENTS):
        for b in range(2, (a - 1) // 2 + 1):
            total = math.comb(a, b)
            share = n / total
            if 1 / MOST_SUBSETS <= share <= 1 and total * math.comb(a - b, b) / 2 * share**2 <= MAX_EDGES:
                found.append((a, b))
    return found


def kneser(rng: np.random.Generator, n: int) -> Made:
    """n nodes of a Kneser graph K(a, b): sets of b out of a elements, joined where they share none.

    The whole graph has chromatic number a - 2b + 2 (Lovasz 1978): sets are coloured by their least element, and those
    that lie within the last 2b - 1 elements, of which any two meet, alike.
    """
    choices = kneser_graphs(n)
    a, b = choices[int(rng.integers(len(choices)))]
    subsets = np.array(list(itertools.combinations(range(a), b)))
    kept_NB = subsets[rng.permutation(len(subsets))[:n]]
    member_NA = np.zeros((n, a), dtype=np.int64)
    member_NA[np.arange(n)[:, None], kept_NB] = 1
    apart_NN = member_NA @ member_NA.T == 0
    k = a - 2 * b + 2
    low = k if n == len(subsets) else 1
    return Made(Graph.of(n, np.argwhere(np.triu(apart_NN, 1))), low, k, np.minimum(kept_NB[:, 0], k - 1))
