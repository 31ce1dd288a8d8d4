"""The repair of a colouring: few moves, of conflicting nodes only.

Legend: N nodes, K colours, T = N x K moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import types

from ranks.jit import kernel
from ranks.workloads.graph_coloring.classical.conflicts import (
    COLOURING,
    VECTOR,
    Colouring,
    colouring,
    recolour,
)
from ranks.workloads.graph_coloring.classical.draws import draw, mix, wide
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

REST = 3
"""A node rests for 1 to so many moves after its own."""
MAX_LOOKS = 30_000_000
"""Of moves, before a repair ends (about a tenth of a second): only graphs of some thousand nodes come so far."""


@dataclass(frozen=True)
class Repaired:
    """`colours_N`: int64, the best colouring met. `conflicts`: its conflicting edges. `changes`: moves up to it."""

    colours_N: Ints
    conflicts: int
    changes: int


def repair(graph: Graph, k: int, colours_N: npt.ArrayLike, seed: int, max_moves: int | None = None) -> Repaired:
    """Recolours conflicting nodes only, at most `max_moves` times (without it 2n times); the best colouring met.

    Each move takes the conflicting node and colour that leave the fewest conflicts; ties are drawn. A node does not
    move again in the next few moves, unless all conflicting nodes rest. A proper colouring is given back as it is.
    It ends after MAX_LOOKS looks at a move, too. ValueError where `colours_N` is not one colour in 0..k-1 for each
    node.
    """
    state, conflicts, num_bad = colouring(graph, k, seed, colours_N)
    best_N, ties_T = state.colours_N.copy(), np.zeros(state.gamma_NK.size, np.int64)
    rested_N = np.zeros(graph.n, np.int64)
    moves = 2 * graph.n if max_moves is None else max_moves
    moves = moves if k > 1 else 0
    best, changes = search(state, rested_N, ties_T, best_N, seed, conflicts, num_bad, moves, MAX_LOOKS)
    return Repaired(best_N.astype(np.int64), best, changes)


@kernel(
    types.UniTuple(types.int64, 2)(
        COLOURING,
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
    state: Colouring,
    rested_N: Ints,
    ties_T: Ints,
    best_N: Ints32,
    seed: int,
    conflicts: int,
    num_bad: int,
    max_moves: int,
    max_looks: int,
) -> tuple[int, int]:
    """(conflicts of the best colouring, which goes to `best_N`; moves up to it).

    Move m draws the numbers n + 2m and n + 2m + 1 of the seed: which of the equal moves, and the rest. Equal moves
    stand in the order of the list of conflicting nodes, then of the colours.
    """
    key, n, k = mix(np.uint64(seed)), len(best_N), state.gamma_NK.shape[1]
    best, best_move, move, looks = conflicts, 0, 0, 0
    while conflicts > 0 and move < max_moves and looks < max_looks:
        looks += num_bad * k
        all_rest = True
        for i in range(num_bad):
            all_rest &= rested_N[state.bad_N[i]] > move
        lowest, num_ties = n, 0
        for i in range(num_bad):
            v = state.bad_N[i]
            if all_rest or rested_N[v] <= move:
                own = state.colours_N[v]
                for c in range(k):
                    delta = wide(state.gamma_NK[v, c]) - state.gamma_NK[v, own]
                    if delta < lowest and c != own:
                        lowest, num_ties = delta, 0
                    if delta == lowest and c != own:
                        ties_T[num_ties] = v * k + c
                        num_ties += 1
        move += 1
        chosen = ties_T[draw(key, n + 2 * move, num_ties)]
        node, new = chosen // k, chosen % k
        rested_N[node] = move + 1 + draw(key, n + 2 * move + 1, REST)
        num_bad = recolour(state, num_bad, node, new)
        conflicts += lowest
        if conflicts < best:
            best, best_move = conflicts, move
            for v in range(n):
                best_N[v] = state.colours_N[v]
    return best, best_move
