"""What the net is told of each node: four counts. NumPy alone.

Legend: N nodes, E undirected edges, D = 2E directed edges, M some nodes, F features, T edges among one node's
neighbours.
"""

from __future__ import annotations

import numpy as np

from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

FEATURES = ("degree", "core number", "triangles", "clique")
WALK_STEPS = 4
"""Ties of the greedy clique go to the node that more walks of so many steps begin at."""


def node_features(graph: Graph) -> Ints32:
    """int32[N, 4], in the order of FEATURES.

    degree: neighbours. core number: the largest k such that the node lies in a subgraph where all have k neighbours or
    more (Seidman 1983). triangles: pairs of neighbours that are joined. clique: nodes of a clique with this node, a
    lower bound of the chromatic number. It grows greedily: of the nodes joined to all chosen ones, the next is the one
    with the most neighbours among them, then with the most walks of 4 steps, then with the lowest number; only between
    nodes that tie in all of these may the numbering decide.
    """
    starts, near = graph.csr()
    features_NF = np.zeros((graph.n, len(FEATURES)), dtype=np.int32)
    features_NF[:, 0] = np.diff(starts)
    features_NF[:, 1] = core_numbers(starts, near)
    features_NF[:, 2], features_NF[:, 3] = _triangles_and_cliques(starts, near)
    return features_NF


def neighbours_of(nodes_M: Ints, starts: Ints32, near: Ints32) -> tuple[Ints, Ints32]:
    """The neighbours of all nodes of a list, one list after the other: (place in `nodes_M`, neighbour)."""
    counts_M = (starts[nodes_M + 1] - starts[nodes_M]).astype(np.int64)
    place = np.repeat(np.arange(len(nodes_M)), counts_M)
    within = np.arange(len(place)) - (np.cumsum(counts_M) - counts_M)[place]
    return place, near[starts[nodes_M][place] + within]


def core_numbers(starts: Ints32, near: Ints32) -> Ints:
    """int64[N]: nodes of the lowest degree are taken away again and again (Matula & Beck 1983)."""
    left_N = np.diff(starts).astype(np.int64)
    core_N = np.zeros_like(left_N)
    is_left_N = np.ones(len(left_N), dtype=bool)
    while is_left_N.any():
        k = left_N[is_left_N].min()
        leaving: Ints = np.flatnonzero(is_left_N & (left_N == k))
        while len(leaving):
            core_N[leaving], is_left_N[leaving] = k, False
            _, ends = neighbours_of(leaving, starts, near)
            touched, times = np.unique(ends[is_left_N[ends]], return_counts=True)
            left_N[touched] -= times
            leaving = touched[left_N[touched] <= k].astype(np.int64)
    return core_N


def _triangles_and_cliques(starts: Ints32, near: Ints32) -> tuple[Ints, Ints]:
    n = len(starts) - 1
    degree_N = np.diff(starts)
    target_D = np.repeat(np.arange(n), degree_N)
    walks_N = np.ones(n)
    for _ in range(WALK_STEPS):
        walks_N = np.bincount(target_D, weights=walks_N[near], minlength=n)
    rank_N = np.empty(n, dtype=np.int64)
    rank_N[np.lexsort((-np.arange(n), walks_N))] = np.arange(n)
    # each edge is listed at the end with fewer neighbours, so that lists stay short beside hubs
    is_up_D = (degree_N[target_D] < degree_N[near]) | ((degree_N[target_D] == degree_N[near]) & (target_D < near))
    up_starts = np.concatenate([[0], np.cumsum(np.bincount(target_D[is_up_D], minlength=n))]).astype(np.int32)
    up_near = near[is_up_D]
    triangles_N, clique_N = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
    place_N = np.full(n, -1)
    for v in range(n):
        around = near[starts[v] : starts[v + 1]].astype(np.int64)
        place_N[around] = np.arange(len(around))
        a_T, ends = neighbours_of(around, up_starts, up_near)
        b_T = place_N[ends]
        place_N[around] = -1
        inside = b_T >= 0
        a_T, b_T = a_T[inside], b_T[inside]
        triangles_N[v] = len(a_T)
        clique_N[v] = 1 + _greedy_clique(a_T, b_T, rank_N[around])
    return triangles_N, clique_N


def _greedy_clique(a_T: Ints, b_T: Ints, rank_M: Ints) -> int:
    """Nodes of a clique among M nodes with edges a-b."""
    size, is_left_M = 0, np.ones(len(rank_M), dtype=bool)
    while num_left := int(is_left_M.sum()):
        if len(a_T) == num_left * (num_left - 1) // 2:
            return size + num_left
        if len(a_T) == 0:
            return size + 1
        joined_M = np.bincount(a_T, minlength=len(rank_M)) + np.bincount(b_T, minlength=len(rank_M))
        chosen = int(np.where(is_left_M, joined_M * (int(rank_M.max()) + 1) + rank_M, -1).argmax())
        size += 1
        is_left_M[:] = False
        is_left_M[b_T[a_T == chosen]] = True
        is_left_M[a_T[b_T == chosen]] = True
        inside = is_left_M[a_T] & is_left_M[b_T]
        a_T, b_T = a_T[inside], b_T[inside]
    return size
