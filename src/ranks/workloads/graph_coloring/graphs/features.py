"""What the net is told of each node: four counts. Compiled where Numba is installed (compiled_features.py), else by
NumPy alone, which is slow on large and dense graphs.

Legend: N nodes, E undirected edges, D = 2E directed edges, M some nodes, F features, T edges among one node's
neighbours.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np

from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

FEATURES = ("degree", "core number", "triangles", "clique")
WALK_STEPS = 4
"""Ties of the greedy clique go to the node that more walks of so many steps begin at."""


class OutOfTime(Exception):
    """A clock ended a computation before it had an answer."""


def node_features(graph: Graph, stop: Callable[[], bool] = lambda: False) -> Ints32:
    """int32[N, 4], in the order of FEATURES.

    degree: neighbours. core number: the largest k such that the node lies in a subgraph where all have k neighbours or
    more (Seidman 1983). triangles: pairs of neighbours that are joined. clique: nodes of a clique with this node, a
    lower bound of the chromatic number. It grows greedily: of the nodes joined to all chosen ones, the next is the one
    with the most neighbours among them, then with the most walks of 4 steps, then with the lowest number; only between
    nodes that tie in all of these may the numbering decide.

    Raises OutOfTime as soon as `stop` says so, where they are compiled.
    """
    if importlib.util.find_spec("numba") is None:
        return plain_features(graph)
    from ranks.workloads.graph_coloring.graphs import compiled_features as compiled

    starts, near = graph.csr()
    found = compiled.triangles_and_cliques(graph, walk_ranks(graph), upwards(graph), stop)
    if found is None:
        raise OutOfTime
    return np.stack([np.diff(starts), compiled.core_numbers(starts, near), *found], 1).astype(np.int32)


def plain_features(graph: Graph) -> Ints32:
    """The same by NumPy alone."""
    starts, near = graph.csr()
    found = _triangles_and_cliques(starts, near, walk_ranks(graph), *upwards(graph))
    return np.stack([np.diff(starts), core_numbers(starts, near), *found], 1).astype(np.int32)


def walk_ranks(graph: Graph) -> Ints:
    """int64[N]: the place of each node by walks of WALK_STEPS that begin at it, more last; the lower node wins ties."""
    starts, near = graph.csr()
    target_D, walks_N = np.repeat(np.arange(graph.n), np.diff(starts)), np.ones(graph.n)
    for _ in range(WALK_STEPS):
        walks_N = np.bincount(target_D, weights=walks_N[near], minlength=graph.n)
    rank_N = np.empty(graph.n, dtype=np.int64)
    rank_N[np.lexsort((-np.arange(graph.n), walks_N))] = np.arange(graph.n)
    return rank_N


def upwards(graph: Graph) -> tuple[Ints32, Ints32]:
    """(starts int32[N + 1], near int32[E]): each edge listed at the end with fewer neighbours, so that lists stay short
    beside hubs; between equals at the lower node."""
    starts, near = graph.csr()
    degree_N = np.diff(starts)
    target_D = np.repeat(np.arange(graph.n), degree_N)
    is_up_D = (degree_N[target_D] < degree_N[near]) | ((degree_N[target_D] == degree_N[near]) & (target_D < near))
    counts_N = np.bincount(target_D[is_up_D], minlength=graph.n)
    return np.concatenate([[0], np.cumsum(counts_N)]).astype(np.int32), near[is_up_D]


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


def _triangles_and_cliques(
    starts: Ints32, near: Ints32, rank_N: Ints, up_starts: Ints32, up_near: Ints32
) -> tuple[Ints, Ints]:
    n = len(starts) - 1
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
