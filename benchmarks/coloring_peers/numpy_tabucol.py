"""TabuCol as one writes it with NumPy: a table of neighbours by colour, kept move by move, and no compiled code.

Legend: N nodes, K colours, M conflicting nodes.
"""

from __future__ import annotations

import numpy as np

from ranks.workloads.graph_coloring.graphs.graph import Graph


def tabucol(graph: Graph, k: int, seed: int, max_moves: int) -> tuple[int, int]:
    """(conflicts of the best colouring, moves). The same rules as ours, other random numbers."""
    rng = np.random.default_rng(seed)
    neighbours = graph.neighbours()
    colours_N = rng.integers(0, k, graph.n)
    gamma_NK = np.stack([np.bincount(colours_N[near], minlength=k) for near in neighbours])
    tabu_NK = np.zeros((graph.n, k), dtype=np.int64)
    own_N = gamma_NK[np.arange(graph.n), colours_N]
    best = conflicts = int(own_N.sum()) // 2
    for move in range(1, max_moves + 1):
        if conflicts == 0:
            return 0, move - 1
        bad_M = np.flatnonzero(own_N)
        delta_MK = gamma_NK[bad_M] - own_N[bad_M, None]
        open_MK = (tabu_NK[bad_M] < move) | (conflicts + delta_MK < best)
        open_MK[np.arange(len(bad_M)), colours_N[bad_M]] = False
        if not open_MK.any():
            continue
        score_MK = np.where(open_MK, delta_MK, graph.num_edges + 1)
        ties = np.flatnonzero(score_MK == score_MK.min())
        row, new = divmod(int(ties[rng.integers(len(ties))]), k)
        node, old = bad_M[row], colours_N[bad_M[row]]
        tabu_NK[node, old] = move + rng.integers(10) + int(0.6 * len(bad_M))
        conflicts += int(delta_MK[row, new])
        near = neighbours[node]
        gamma_NK[near, old] -= 1
        gamma_NK[near, new] += 1
        colours_N[node] = new
        own_N[near] = gamma_NK[near, colours_N[near]]
        own_N[node] = gamma_NK[node, new]
        best = min(best, conflicts)
    return best, max_moves
