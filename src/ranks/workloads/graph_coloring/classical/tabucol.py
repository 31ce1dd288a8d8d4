"""TabuCol (Hertz & de Werra 1987, Computing 39): tabu search for a proper k-colouring.

Each move gives a conflicting node another colour: of all such moves that are not tabu, one that
leaves the fewest conflicts; ties are broken at random. The old colour of the node is then tabu for
it. Aspiration: a tabu move is allowed if it leads to fewer conflicts than the best colouring so
far. The tabu tenure is that of Galinier & Hao 1999 (J. Comb. Optim. 3): random in 0..9, plus 0.6 x
conflicting nodes. The table gamma holds, for each node and colour, how many neighbours have that
colour, so a move reads (conflicting nodes) x k numbers.

Legend: N nodes, K colours, T = N x K moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import from_dtype, types

from ranks.jit import inlined, kernel
from ranks.workloads.graph_coloring.classical.colouring_state import (
    STATE,
    VECTOR,
    ColouringState,
    initial_state,
    recolour,
)
from ranks.workloads.graph_coloring.classical.rng import int64, mix, randint
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

TENURE_RANDOM, TENURE_PER_CONFLICT = 10, 0.6
EVALUATIONS_PER_CALL = 3_000_000
"""Entries of gamma that are read between two looks at the clock: some milliseconds."""
FOREVER = 1 << 62
"""The move until which a node's own colour is tabu."""
NO_MOVE = 1 << 29
"""More conflicts than any move can make."""
PROGRESS = np.dtype([("move", np.int64), ("conflicts", np.int64), ("num_conflicting", np.int64), ("best", np.int64)])
int32: Any = np.int32
Progress: TypeAlias = Any
"""A record of PROGRESS."""


@dataclass(frozen=True)
class TabuResult:
    """The best colouring that TabuCol found.

    `colours_N`: int64. `conflicts`: its conflicting edges. `seconds`: by the given clock.

    `moves`: all moves of the search. A move in which every colour was tabu (only in tiny graphs)
    counts too.
    """

    colours_N: Ints
    conflicts: int
    moves: int
    seconds: float


def tabucol(
    graph: Graph,
    k: int,
    seed: int,
    *,
    max_moves: int | None = None,
    max_s: float | None = None,
    start_N: npt.ArrayLike | None = None,
    clock: Callable[[], float] | None = None,
) -> TabuResult:
    """Tabu search from random colours or `start_N`, until no edge conflicts or up to a limit.

    Give `max_moves`, `max_s` or both. `max_s`: seconds of wall time, or of another clock
    (time.process_time). Without `max_s` the result depends on the other arguments only. Raises
    ValueError without a limit, if k < 1, or if `start_N` is not one colour in 0..k-1 for each node.
    """
    if max_moves is None and max_s is None:
        raise ValueError("tabucol needs max_moves or max_s")
    clock = clock or time.perf_counter
    start_s = clock()
    deadline = start_s + max_s if max_s is not None else float("inf")
    state, conflicts, num_conflicting = initial_state(graph, k, seed, start_N)
    tabu_NK = np.zeros(state.gamma_NK.shape, np.int64)
    tabu_NK[np.arange(graph.n), state.colours_N] = FOREVER
    best_N, ties_T = state.colours_N.copy(), np.zeros(tabu_NK.size, np.int64)
    progress = np.array([(0, conflicts, num_conflicting, conflicts)], PROGRESS)
    left = FOREVER if max_moves is None else max_moves
    moves_per_call = 1 + EVALUATIONS_PER_CALL // (1 + tabu_NK.size)
    while progress["conflicts"][0] and k > 1 and left > 0 and clock() < deadline:
        search(state, tabu_NK, ties_T, best_N, progress, seed, min(left, moves_per_call))
        left -= moves_per_call
    move, _, _, best = progress[0].tolist()
    return TabuResult(best_N.astype(np.int64), best, move, clock() - start_s)


@inlined
def is_allowed(gamma: int, tabu: int, move: int, aspiration: int) -> bool:
    """Whether a move to a colour that `gamma` neighbours have is allowed.

    It is not tabu, or it leads to a new best colouring.
    """
    return (tabu < move) | (gamma <= aspiration)


@inlined
def min_gamma(gamma_K: Ints32, tabu_K: Ints, move: int, aspiration: int) -> int:
    """The lowest gamma of the allowed colours; NO_MOVE if none is allowed."""
    least = int32(NO_MOVE)
    for c in range(len(gamma_K)):
        gamma = gamma_K[c] if is_allowed(gamma_K[c], tabu_K[c], move, aspiration) else int32(NO_MOVE)
        least = min(least, gamma)
    return least


@kernel(
    types.void(
        STATE,
        types.Array(types.int64, 2, "C"),
        types.Array(types.int64, 1, "C"),
        VECTOR,
        types.Array(from_dtype(PROGRESS), 1, "C"),
        types.int64,
        types.int64,
    ),
    allocates=False,
)
def search(
    state: ColouringState, tabu_NK: Ints, ties_T: Ints, best_N: Ints32, progress: Progress, seed: int, num_moves: int
) -> None:
    """Continues the search for `num_moves` moves, or until no conflict is left.

    Move m uses the random numbers n + 2m and n + 2m + 1 of the seed: for the choice between equal
    moves, and for the tenure. Equal moves are ordered as in the list of conflicting nodes, then by
    colour.
    """
    key, n, k = mix(np.uint64(seed)), len(best_N), tabu_NK.shape[1]
    move, conflicts = progress[0].move, progress[0].conflicts
    num_conflicting, best = progress[0].num_conflicting, progress[0].best
    last = move + num_moves
    while conflicts > 0 and move < last:
        # Find all allowed moves that change the number of conflicts by the lowest difference.
        move += 1
        lowest, num_ties = NO_MOVE // 2, 0
        for i in range(num_conflicting):
            v = state.conflicting_N[i]
            own = int64(state.gamma_NK[v, state.colours_N[v]])
            aspiration = best - conflicts + own - 1
            least = min_gamma(state.gamma_NK[v], tabu_NK[v], move, aspiration)
            if least - own < lowest:
                lowest, num_ties = least - own, 0
            if least - own == lowest:
                for c in range(k):
                    if state.gamma_NK[v, c] == least and is_allowed(least, tabu_NK[v, c], move, aspiration):
                        ties_T[num_ties] = v * k + c
                        num_ties += 1
        if num_ties == 0:
            continue  # every move is tabu: wait until a tenure ends

        # Make one of them; the old colour of the node becomes tabu.
        chosen = ties_T[randint(key, n + 2 * move, num_ties)]
        node, new = chosen // k, chosen % k
        tenure = randint(key, n + 2 * move + 1, TENURE_RANDOM) + int64(TENURE_PER_CONFLICT * num_conflicting)
        tabu_NK[node, state.colours_N[node]] = move + tenure
        tabu_NK[node, new] = FOREVER
        num_conflicting = recolour(state, num_conflicting, node, new)
        conflicts += lowest
        if conflicts < best:
            best = conflicts
            for v in range(n):
                best_N[v] = state.colours_N[v]

    progress[0].move, progress[0].conflicts = move, conflicts
    progress[0].num_conflicting, progress[0].best = num_conflicting, best
