"""Cliques: a lower bound of the chromatic number.

Legend: N nodes, D directed edges.
"""

from __future__ import annotations

import numpy as np

from ranks.jit import kernel
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

MAX_LOOKS = 10_000_000
"""Neighbours that are looked at before the search for a larger clique ends (some hundredths of a second)."""


def greedy_clique(graph: Graph) -> Ints:
    """A clique, int64[its nodes] in rising order, grown greedily from one start after the other; the largest is kept.

    Starts are all nodes by falling degree, unless their neighbours are too many (MAX_LOOKS) or too few to matter.
    """
    order_N = np.argsort(-graph.degrees(), kind="stable")
    clique_N = np.zeros(graph.n, np.int64)
    size = _largest(*graph.csr(), order_N, MAX_LOOKS, clique_N)
    return np.sort(clique_N[:size])


@kernel("int64(int32[::1], int32[::1], int64[::1], int64, int64[::1])")
def _largest(starts: Ints32, near: Ints32, order_N: Ints, max_looks: int, best_N: Ints) -> int:
    """The size of the clique that is the first of `best_N`. It takes, of the candidates (who know all its nodes), the
    one who knows most of the others."""
    n = len(order_N)
    clique, candidates, is_candidate_N = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    knows_N, met_N = np.zeros(n, np.int64), np.zeros(n, np.int64)
    best = turn = looks = 0
    for start in order_N:
        num = starts[start + 1] - starts[start]
        if num < best or looks > max_looks:
            break
        for j in range(num):
            candidates[j] = near[starts[start] + j]
            is_candidate_N[candidates[j]] = 1
        for j in range(num):
            u = candidates[j]
            knows_N[u] = 0
            for i in range(starts[u], starts[u + 1]):
                knows_N[u] += is_candidate_N[near[i]]
            looks += 2 * (starts[u + 1] - starts[u])
        clique[0], size = start, 1
        while num > 0:
            chosen = candidates[0]
            for j in range(1, num):
                if knows_N[candidates[j]] > knows_N[chosen]:
                    chosen = candidates[j]
            clique[size] = chosen
            size, turn = size + 1, turn + 1
            for i in range(starts[chosen], starts[chosen + 1]):
                met_N[near[i]] = turn
            num_left = 0
            for j in range(num):
                u = candidates[j]
                if met_N[u] == turn:
                    candidates[num_left] = u
                    num_left += 1
                else:
                    is_candidate_N[u] = 0
                    for i in range(starts[u], starts[u + 1]):
                        knows_N[near[i]] -= 1
            num = num_left
        if size > best:
            best = size
            for i in range(size):
                best_N[i] = clique[i]
    return best
