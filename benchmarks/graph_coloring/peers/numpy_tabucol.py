"""A plain TabuCol with NumPy: the table gamma is updated with each move, and no code is compiled.

Legend: N nodes, K colours, M conflicting nodes.
"""

from __future__ import annotations

import numpy as np

from ranks.workloads.graph_coloring.graphs.graph import Graph


def tabucol(graph: Graph, k: int, seed: int, max_moves: int) -> tuple[int, int]:
    """(conflicts of the best colouring, moves). The same rules as ours, but other random numbers."""
    rng = np.random.default_rng(seed)
    neighbours = graph.neighbours()
    colours_N = rng.integers(0, k, graph.n)
    gamma_NK = np.stack([np.bincount(colours_N[adjacent], minlength=k) for adjacent in neighbours])
    tabu_NK = np.zeros((graph.n, k), dtype=np.int64)
    own_N = gamma_NK[np.arange(graph.n), colours_N]
    best = conflicts = int(own_N.sum()) // 2
    for move in range(1, max_moves + 1):
        if conflicts == 0:
            return 0, move - 1
        conflicting_M = np.flatnonzero(own_N)
        delta_MK = gamma_NK[conflicting_M] - own_N[conflicting_M, None]
        allowed_MK = (tabu_NK[conflicting_M] < move) | (conflicts + delta_MK < best)
        allowed_MK[np.arange(len(conflicting_M)), colours_N[conflicting_M]] = False
        if not allowed_MK.any():
            continue
        score_MK = np.where(allowed_MK, delta_MK, graph.num_edges + 1)
        ties = np.flatnonzero(score_MK == score_MK.min())
        row, new = divmod(int(ties[rng.integers(len(ties))]), k)
        node, old = conflicting_M[row], colours_N[conflicting_M[row]]
        tabu_NK[node, old] = move + rng.integers(10) + int(0.6 * len(conflicting_M))
        conflicts += int(delta_MK[row, new])
        adjacent = neighbours[node]
        gamma_NK[adjacent, old] -= 1
        gamma_NK[adjacent, new] += 1
        colours_N[node] = new
        own_N[adjacent] = gamma_NK[adjacent, colours_N[adjacent]]
        own_N[node] = gamma_NK[node, new]
        best = min(best, conflicts)
    return best, max_moves
