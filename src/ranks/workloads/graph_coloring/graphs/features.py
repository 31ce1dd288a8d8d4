"""Node features of a graph, the input of the net: four counts for each node.

Compiled where Numba is installed (compiled_features.py); otherwise by NumPy, which is slow on large
and dense graphs.

Legend: N nodes, E undirected edges, D = 2E directed edges, M some nodes, F features, T edges
between one node's neighbours.
"""

from __future__ import annotations

import importlib.util

import numpy as np

from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

FEATURES = ("degree", "core number", "triangles", "clique")
WALK_STEPS = 4
"""The greedy clique breaks ties by the number of walks of this length that begin at a node."""


def node_features(graph: Graph) -> Ints32:
    """int32[N, 4]: the features of each node, in the order of FEATURES.

    - degree: the number of neighbours.
    - core number: the largest k such that the node is in the k-core (Seidman 1983).
    - triangles: the number of pairs of neighbours that are adjacent.
    - clique: the size of a clique that contains the node, a lower bound of the chromatic number.
      The clique grows greedily: the next node is the candidate with the most neighbours among the
      candidates, then with the most walks of 4 steps, then with the lowest number. So the node
      numbers decide only between nodes that tie in all of these.
    """
    if importlib.util.find_spec("numba") is None:
        return numpy_features(graph)
    from ranks.workloads.graph_coloring.graphs import compiled_features as compiled

    starts, neighbours = graph.csr()
    counts = compiled.triangles_and_cliques(graph, walk_ranks(graph), oriented_edges(graph))
    return np.stack([np.diff(starts), compiled.core_numbers(starts, neighbours), *counts], 1).astype(np.int32)


def numpy_features(graph: Graph) -> Ints32:
    """The same features as `node_features`, computed with NumPy only."""
    starts, neighbours = graph.csr()
    counts = _triangles_and_cliques(starts, neighbours, walk_ranks(graph), *oriented_edges(graph))
    return np.stack([np.diff(starts), core_numbers(starts, neighbours), *counts], 1).astype(np.int32)


def walk_ranks(graph: Graph) -> Ints:
    """int64[N]: the rank of each node by its number of walks of WALK_STEPS.

    On a tie the lower node has the higher rank.
    """
    starts, neighbours = graph.csr()
    target_D, walks_N = np.repeat(np.arange(graph.n), np.diff(starts)), np.ones(graph.n)
    for _ in range(WALK_STEPS):
        walks_N = np.bincount(target_D, weights=walks_N[neighbours], minlength=graph.n)
    rank_N = np.empty(graph.n, dtype=np.int64)
    rank_N[np.lexsort((-np.arange(graph.n), walks_N))] = np.arange(graph.n)
    return rank_N


def oriented_edges(graph: Graph) -> tuple[Ints32, Ints32]:
    """(starts int32[N + 1], neighbours int32[E]): each edge once, at its end of lower degree.

    Between equal degrees it is listed at the lower node. So the lists stay short in graphs with
    hubs.
    """
    starts, neighbours = graph.csr()
    degree_N = np.diff(starts)
    target_D = np.repeat(np.arange(graph.n), degree_N)
    same_degree_D = degree_N[target_D] == degree_N[neighbours]
    keep_D = (degree_N[target_D] < degree_N[neighbours]) | (same_degree_D & (target_D < neighbours))
    counts_N = np.bincount(target_D[keep_D], minlength=graph.n)
    return np.concatenate([[0], np.cumsum(counts_N)]).astype(np.int32), neighbours[keep_D]


def neighbours_of(nodes_M: Ints, starts: Ints32, neighbours: Ints32) -> tuple[Ints, Ints32]:
    """The neighbours of several nodes, concatenated: (position in `nodes_M`, neighbour)."""
    counts_M = (starts[nodes_M + 1] - starts[nodes_M]).astype(np.int64)
    position = np.repeat(np.arange(len(nodes_M)), counts_M)
    offset = np.arange(len(position)) - (np.cumsum(counts_M) - counts_M)[position]
    return position, neighbours[starts[nodes_M][position] + offset]


def core_numbers(starts: Ints32, neighbours: Ints32) -> Ints:
    """int64[N]: core numbers, by removing nodes of the lowest degree (Matula & Beck 1983)."""
    left_N = np.diff(starts).astype(np.int64)
    core_N = np.zeros_like(left_N)
    is_left_N = np.ones(len(left_N), dtype=bool)
    while is_left_N.any():
        k = left_N[is_left_N].min()
        removed: Ints = np.flatnonzero(is_left_N & (left_N == k))
        while len(removed):
            core_N[removed], is_left_N[removed] = k, False
            _, ends = neighbours_of(removed, starts, neighbours)
            touched, times = np.unique(ends[is_left_N[ends]], return_counts=True)
            left_N[touched] -= times
            removed = touched[left_N[touched] <= k].astype(np.int64)
    return core_N


def _triangles_and_cliques(
    starts: Ints32, neighbours: Ints32, rank_N: Ints, oriented_starts: Ints32, oriented_neighbours: Ints32
) -> tuple[Ints, Ints]:
    n = len(starts) - 1
    triangles_N, clique_N = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
    position_N = np.full(n, -1)
    for v in range(n):
        around = neighbours[starts[v] : starts[v + 1]].astype(np.int64)
        position_N[around] = np.arange(len(around))
        a_T, ends = neighbours_of(around, oriented_starts, oriented_neighbours)
        b_T = position_N[ends]
        position_N[around] = -1
        inside = b_T >= 0
        a_T, b_T = a_T[inside], b_T[inside]
        triangles_N[v] = len(a_T)
        clique_N[v] = 1 + _greedy_clique(a_T, b_T, rank_N[around])
    return triangles_N, clique_N


def _greedy_clique(a_T: Ints, b_T: Ints, rank_M: Ints) -> int:
    """The size of a greedy clique in the graph of M nodes with the edges a-b."""
    size, is_left_M = 0, np.ones(len(rank_M), dtype=bool)
    while num_left := int(is_left_M.sum()):
        if len(a_T) == num_left * (num_left - 1) // 2:
            return size + num_left
        if len(a_T) == 0:
            return size + 1
        adjacent_M = np.bincount(a_T, minlength=len(rank_M)) + np.bincount(b_T, minlength=len(rank_M))
        chosen = int(np.where(is_left_M, adjacent_M * (int(rank_M.max()) + 1) + rank_M, -1).argmax())
        size += 1
        is_left_M[:] = False
        is_left_M[b_T[a_T == chosen]] = True
        is_left_M[a_T[b_T == chosen]] = True
        inside = is_left_M[a_T] & is_left_M[b_T]
        a_T, b_T = a_T[inside], b_T[inside]
    return size
