"""Repair of a colouring: a short local search that recolours conflicting nodes only.

Legend: N nodes, K colours, T = N x K possible moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import types

from ranks.jit import kernel
from ranks.workloads.graph_coloring.classical.colouring_state import (
    STATE,
    VECTOR,
    ColouringState,
    initial_state,
    recolour,
)
from ranks.workloads.graph_coloring.classical.rng import int64, mix, randint
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

MAX_TENURE = 3
"""After its move a node is tabu for 1 to this many moves."""
MAX_EVALUATIONS = 30_000_000
"""A repair stops after evaluating this many moves; only graphs of some thousand nodes reach it."""


@dataclass(frozen=True)
class RepairResult:
    """The best colouring that a repair found.

    `colours_N`: int64. `conflicts`: its conflicting edges. `changes`: moves made up to it.
    """

    colours_N: Ints
    conflicts: int
    changes: int


def repair(graph: Graph, k: int, colours_N: npt.ArrayLike, seed: int, max_moves: int | None = None) -> RepairResult:
    """Recolours conflicting nodes; returns the best colouring found.

    At most `max_moves` moves are made, by default 2n.

    Each move is the conflicting node and the colour that leave the fewest conflicts; ties are
    broken at random. A node is tabu for the next few moves, unless all conflicting nodes are tabu.
    A proper colouring is returned unchanged. The repair also stops after MAX_EVALUATIONS. Raises
    ValueError if `colours_N` is not one colour in 0..k-1 for each node.
    """
    state, conflicts, num_conflicting = initial_state(graph, k, seed, colours_N)
    best_N, ties_T = state.colours_N.copy(), np.zeros(state.gamma_NK.size, np.int64)
    tabu_until_N = np.zeros(graph.n, np.int64)
    moves = 2 * graph.n if max_moves is None else max_moves
    moves = moves if k > 1 else 0
    best, changes = search(
        state, tabu_until_N, ties_T, best_N, seed, conflicts, num_conflicting, moves, MAX_EVALUATIONS
    )
    return RepairResult(best_N.astype(np.int64), best, changes)


@kernel(
    types.UniTuple(types.int64, 2)(
        STATE,
        types.Array(types.int64, 1, "C"),
        types.Array(types.int64, 1, "C"),
        VECTOR,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
    ),
    allocates=False,
)
def search(
    state: ColouringState,
    tabu_until_N: Ints,
    ties_T: Ints,
    best_N: Ints32,
    seed: int,
    conflicts: int,
    num_conflicting: int,
    max_moves: int,
    max_evaluations: int,
) -> tuple[int, int]:
    """Writes the best colouring to `best_N`; returns (its conflicts, moves up to it).

    Move m uses the random numbers n + 2m and n + 2m + 1 of the seed: for the choice between equal
    moves, and for the tenure. Equal moves are ordered as in the list of conflicting nodes, then by
    colour.
    """
    key, n, k = mix(np.uint64(seed)), len(best_N), state.gamma_NK.shape[1]
    best, best_move, move, evaluations = conflicts, 0, 0, 0
    while conflicts > 0 and move < max_moves and evaluations < max_evaluations:
        # Find all moves that change the number of conflicts by the lowest difference.
        evaluations += num_conflicting * k
        all_tabu = True
        for i in range(num_conflicting):
            all_tabu &= tabu_until_N[state.conflicting_N[i]] > move
        lowest, num_ties = n, 0
        for i in range(num_conflicting):
            v = state.conflicting_N[i]
            if all_tabu or tabu_until_N[v] <= move:
                own = state.colours_N[v]
                for c in range(k):
                    delta = int64(state.gamma_NK[v, c]) - state.gamma_NK[v, own]
                    if delta < lowest and c != own:
                        lowest, num_ties = delta, 0
                    if delta == lowest and c != own:
                        ties_T[num_ties] = v * k + c
                        num_ties += 1

        # Make one of them, and keep the colouring if it is the best so far.
        move += 1
        chosen = ties_T[randint(key, n + 2 * move, num_ties)]
        node, new = chosen // k, chosen % k
        tabu_until_N[node] = move + 1 + randint(key, n + 2 * move + 1, MAX_TENURE)
        num_conflicting = recolour(state, num_conflicting, node, new, 0)
        conflicts += lowest
        if conflicts < best:
            best, best_move = conflicts, move
            for v in range(n):
                best_N[v] = state.colours_N[v]
    return best, best_move
