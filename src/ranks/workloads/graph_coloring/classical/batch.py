"""Colouring many graphs in one compiled call: DSATUR, then TabuCol with fewer and fewer colours.

The result of a graph depends on the graph, its position and the seed only, so any number of threads
may share the graphs.

Legend: B graphs, N nodes of all graphs, E edges of all graphs, K colours.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import from_dtype, types

from ranks.jit import kernel
from ranks.splitmix64 import GOLDEN_GAMMA_U64
from ranks.workloads.graph_coloring.classical.cliques import largest_greedy_clique
from ranks.workloads.graph_coloring.classical.colouring_state import ColouringState, count_conflicts, random_colours
from ranks.workloads.graph_coloring.classical.greedy import dsatur_of_rows
from ranks.workloads.graph_coloring.classical.lanes import LANES
from ranks.workloads.graph_coloring.classical.rng import int64, mix
from ranks.workloads.graph_coloring.classical.tabucol import (
    FOREVER,
    PROGRESS,
    TENURE_PER_CONFLICT,
    TENURE_RANDOM,
    Progress,
    TabuList,
    search,
)
from ranks.workloads.graph_coloring.graphs.graph import Ints, Ints32

FLAG: Any = np.int32(1 << 30)
HIGHEST: Any = np.int32(2**31 - 1)
NO_LIMIT = 1 << 62
MAX_CLIQUE_STEPS = 20_000
"""Neighbours that the search for a clique reads in each graph."""
Rows = tuple[Ints32, Ints32]


@kernel("Tuple((int32[::1], int32[::1]))(int64, int64[:, ::1])")
def rows_of_edges(n: int, edges_E2: Ints) -> Rows:
    """(starts int32[n + 1], neighbours int32[2E]), sorted, of edges as in `Graph`."""
    starts = np.zeros(n + 1, np.int32)
    for e in range(len(edges_E2)):
        starts[edges_E2[e, 0] + 1] += 1
        starts[edges_E2[e, 1] + 1] += 1
    for v in range(n):
        starts[v + 1] += starts[v]
    position_N, neighbours = starts[:n].copy(), np.zeros(2 * len(edges_E2), np.int32)
    for end in range(2):  # first the lower neighbours of each node, then the higher ones
        for e in range(len(edges_E2)):
            node = edges_E2[e, 1 - end]
            neighbours[position_N[node]] = edges_E2[e, end]
            position_N[node] += 1
    return starts, neighbours


@kernel(
    types.int64(
        types.Array(types.int32, 1, "C"),
        types.Array(types.int32, 1, "C"),
        types.int64,
        types.int64,
        types.int64,
        types.Array(types.int64, 1, "C"),
        types.Array(from_dtype(PROGRESS), 1, "C"),
    )
)
def tabucol_of_rows(
    starts: Ints32, neighbours: Ints32, k: int, seed: int, max_moves: int, colours_N: Ints, progress: Progress
) -> int:
    """TabuCol from random colours; writes the best colouring, returns its conflicts.

    The moves are those of `tabucol` with the same seed.
    """
    n, columns = len(colours_N), -(-k // LANES) * LANES
    zeros_N = np.zeros(n, np.int32)
    gamma_NK = np.zeros((n, columns), np.int32)
    state = ColouringState(starts, neighbours, random_colours(n, k, seed), gamma_NK, zeros_N, zeros_N.copy())
    conflicts, num_conflicting = count_conflicts(state)
    until_NK, records = np.zeros((n, k), np.int64), 1
    for v in range(n):
        gamma_NK[v, state.colours_N[v]] |= FLAG
        until_NK[v, state.colours_N[v]] = FOREVER
        for c in range(k, columns):
            gamma_NK[v, c] = HIGHEST
    while records <= TENURE_RANDOM + int64(TENURE_PER_CONFLICT * n):
        records *= 2
    none_R = np.full(records, -1)
    tabu = TabuList(until_NK, none_R, none_R.copy(), none_R.copy(), none_R.copy())
    best_N = state.colours_N.copy()
    progress[0].move, progress[0].conflicts = 0, conflicts
    progress[0].num_conflicting, progress[0].best = num_conflicting, conflicts
    if k > 1:
        search(state, tabu, np.zeros(n, np.int64), best_N, progress, seed, FLAG, max_moves, NO_LIMIT)
    colours_N[:] = best_N
    return progress[0].best


@kernel(
    types.void(
        types.Array(types.int64, 1, "C"),
        types.Array(types.int64, 1, "C"),
        types.Array(types.int64, 2, "C"),
        types.Array(types.int64, 1, "C"),
        types.int64,
        types.int64,
        types.int64,
        types.Array(types.int64, 1, "C"),
        types.Array(types.int64, 1, "C"),
        types.Array(types.int64, 1, "C"),
        types.Array(from_dtype(PROGRESS), 1, "C"),
    )
)
def colour_graphs(
    first_node_B: Ints,
    first_edge_B: Ints,
    edges_E2: Ints,
    chosen: Ints,
    only_k: int,
    seed: int,
    moves_per_node: int,
    colours_N: Ints,
    used_B: Ints,
    clique_B: Ints,
    progress: npt.NDArray[Any],
) -> None:
    """Improves the colourings of the chosen graphs.

    `first_node_B`, `first_edge_B`: int64[B + 1]. `used_B`: the colours of each graph's colouring; 0
    before the first call, which makes it by DSATUR. `clique_B`: the size of a clique. With `only_k`
    above 0: colourings with at most `only_k` colours are enough, and the best conflicting one is not
    kept. Each search with fewer colours makes `moves_per_node` x n moves; the first failure ends it.
    """
    for b in chosen:
        low, high = int64(first_node_B[b]), int64(first_node_B[b + 1])
        n, own_N = high - low, colours_N[low:high]
        starts, neighbours = rows_of_edges(n, edges_E2[first_edge_B[b] : first_edge_B[b + 1]])
        if used_B[b] == 0 and n > 0:
            degree_N = (starts[1:] - starts[:-1]).astype(np.int64)
            most = min(degree_N.max(), int64(math.sqrt(float(len(neighbours)))) + 1) + 1
            own_N[:] = dsatur_of_rows(starts, neighbours, most)
            used_B[b] = own_N.max() + 1
            order_N = np.argsort(-degree_N, kind="mergesort")
            clique_B[b] = largest_greedy_clique(starts, neighbours, order_N, MAX_CLIQUE_STEPS, np.zeros(n, np.int64))
        key = mix(np.uint64(seed) + np.uint64(b) * GOLDEN_GAMMA_U64)
        found_N = np.zeros(n, np.int64)
        while moves_per_node > 0 and used_B[b] > max(clique_B[b], only_k):
            k = int64(used_B[b] - 1 if only_k == 0 else only_k)
            of_k = int64(mix(key + np.uint64(k) * GOLDEN_GAMMA_U64) >> np.uint64(1))
            if tabucol_of_rows(starts, neighbours, k, of_k, moves_per_node * n, found_N, progress) > 0:
                break
            own_N[:] = found_N
            used_B[b] = k
