"""Greedy cliques: the size of a clique is a lower bound of the chromatic number.

Legend: N nodes, D directed edges.
"""

from __future__ import annotations

import numpy as np

from ranks.jit import kernel
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

MAX_STEPS = 10_000_000
"""Neighbours that the search reads before it stops (some hundredths of a second)."""


def greedy_clique(graph: Graph) -> Ints:
    """The nodes of a large clique, int64, sorted: the largest of many greedy cliques.

    All nodes are start nodes, by descending degree, until a node has too few neighbours for a
    larger clique, or until MAX_STEPS.
    """
    order_N = np.argsort(-graph.degrees(), kind="stable")
    clique_N = np.zeros(graph.n, np.int64)
    size = largest_greedy_clique(*graph.csr(), order_N, MAX_STEPS, clique_N)
    return np.sort(clique_N[:size])


@kernel("int64(int32[::1], int32[::1], int64[::1], int64, int64[::1])")
def largest_greedy_clique(starts: Ints32, neighbours: Ints32, order_N: Ints, max_steps: int, best_N: Ints) -> int:
    """Writes the largest clique to the beginning of `best_N`; returns its size.

    Candidates are the nodes adjacent to all of the clique. The next node is the candidate that is
    adjacent to most other candidates.
    """
    n = len(order_N)
    clique, candidates, is_candidate_N = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    adjacent_N, mark_N = np.zeros(n, np.int64), np.zeros(n, np.int64)
    best = turn = steps = 0
    for start in order_N:
        num = starts[start + 1] - starts[start]
        if num < best or steps > max_steps:
            break
        # Candidates are the neighbours of the start node; count for each how many other candidates
        # it is adjacent to.
        for j in range(num):
            candidates[j] = neighbours[starts[start] + j]
            is_candidate_N[candidates[j]] = 1
        for j in range(num):
            u = candidates[j]
            adjacent_N[u] = 0
            for i in range(starts[u], starts[u + 1]):
                adjacent_N[u] += is_candidate_N[neighbours[i]]
            steps += 2 * (starts[u + 1] - starts[u])

        clique[0], size = start, 1
        while num > 0:
            # Add the best candidate to the clique.
            chosen = candidates[0]
            for j in range(1, num):
                if adjacent_N[candidates[j]] > adjacent_N[chosen]:
                    chosen = candidates[j]
            clique[size] = chosen
            size, turn = size + 1, turn + 1

            # Keep only the candidates adjacent to it; the counts of their neighbours lose the
            # removed ones.
            for i in range(starts[chosen], starts[chosen + 1]):
                mark_N[neighbours[i]] = turn
            num_left = 0
            for j in range(num):
                u = candidates[j]
                if mark_N[u] == turn:
                    candidates[num_left] = u
                    num_left += 1
                else:
                    is_candidate_N[u] = 0
                    for i in range(starts[u], starts[u + 1]):
                        adjacent_N[neighbours[i]] -= 1
            num = num_left
        if size > best:
            best = size
            for i in range(size):
                best_N[i] = clique[i]
    return best
