"""TabuCol (Hertz & de Werra 1987, Computing 39): tabu search for a proper colouring with exactly k colours.

Each move gives a conflicting node another colour: of all such moves that are not tabu, one that leaves the fewest
conflicts; ties are drawn. Its old colour is then tabu for that node. A tabu move that beats the best colouring is
allowed. The tenure is that of Galinier & Hao 1999 (J. Comb. Optim. 3): random in 0..9, plus 0.6 x conflicting nodes.
What each colour would cost is kept in a table (gamma), so that a move looks at (conflicting nodes) x k numbers.

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
from ranks.workloads.graph_coloring.classical.conflicts import (
    COLOURING,
    VECTOR,
    Colouring,
    colouring,
    recolour,
)
from ranks.workloads.graph_coloring.classical.draws import draw, mix, wide
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

TENURE_RANDOM, TENURE_PER_CONFLICT = 10, 0.6
LOOKS_AT_ONCE = 3_000_000
"""Between two looks at the clock, in entries of the table: some milliseconds."""
FOREVER = 1 << 62
"""Tabu until then: a node's own colour."""
NO_MOVE = 1 << 29
"""More conflicts than any move makes."""
PROGRESS = np.dtype([("move", np.int64), ("conflicts", np.int64), ("num_bad", np.int64), ("best", np.int64)])
narrow: Any = np.int32
Progress: TypeAlias = Any
"""One record of PROGRESS."""


@dataclass(frozen=True)
class TabuResult:
    """`colours_N`: int64, the best colouring seen. `conflicts`: its conflicting edges. `seconds`: by its clock.
    `moves`: all of the search, also those (of tiny graphs) in which everything was tabu."""

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
    clock: Callable[[], float] = time.perf_counter,
) -> TabuResult:
    """Searches from random colours, or from `start_N`, until no edge conflicts or a limit is met (give one or both).
    `max_s` is on the wall, or by another clock, such as time.process_time.

    Without `max_s` the answer is a pure function of the arguments. ValueError without a limit, where k < 1, or where
    `start_N` is not one colour in 0..k-1 for each node.
    """
    if max_moves is None and max_s is None:
        raise ValueError("tabucol needs max_moves or max_s")
    began = clock()
    deadline = began + max_s if max_s is not None else float("inf")
    state, conflicts, num_bad = colouring(graph, k, seed, start_N)
    tabu_NK = np.zeros(state.gamma_NK.shape, np.int64)
    tabu_NK[np.arange(graph.n), state.colours_N] = FOREVER
    best_N, ties_T = state.colours_N.copy(), np.zeros(tabu_NK.size, np.int64)
    progress = np.array([(0, conflicts, num_bad, conflicts)], PROGRESS)
    left = FOREVER if max_moves is None else max_moves
    at_once = 1 + LOOKS_AT_ONCE // (1 + tabu_NK.size)
    while progress["conflicts"][0] and k > 1 and left > 0 and clock() < deadline:
        search(state, tabu_NK, ties_T, best_N, progress, seed, min(left, at_once))
        left -= at_once
    move, _, _, best = progress[0].tolist()
    return TabuResult(best_N.astype(np.int64), best, move, clock() - began)


@inlined
def is_open(gamma: int, tabu: int, move: int, enough: int) -> bool:
    """Whether a colour that `gamma` neighbours have may be taken: not tabu, or so few that it beats the best."""
    return (tabu < move) | (gamma <= enough)


@inlined
def fewest(gamma_K: Ints32, tabu_K: Ints, move: int, enough: int) -> int:
    """The least gamma of the open colours; NO_MOVE if none is open."""
    least = narrow(NO_MOVE)
    for c in range(len(gamma_K)):
        gamma = gamma_K[c] if is_open(gamma_K[c], tabu_K[c], move, enough) else narrow(NO_MOVE)
        least = min(least, gamma)
    return least


@kernel(
    types.void(
        COLOURING,
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
    state: Colouring, tabu_NK: Ints, ties_T: Ints, best_N: Ints32, progress: Progress, seed: int, num_moves: int
) -> None:
    """So many moves more; fewer if no conflict is left.

    Move m draws the numbers n + 2m and n + 2m + 1 of the seed: which of the equal moves, and the tenure. Equal moves
    stand in the order of the list of conflicting nodes, then of the colours.
    """
    key, n, k = mix(np.uint64(seed)), len(best_N), tabu_NK.shape[1]
    move, conflicts = progress[0].move, progress[0].conflicts
    num_bad, best = progress[0].num_bad, progress[0].best
    last = move + num_moves
    while conflicts > 0 and move < last:
        move += 1
        lowest, num_ties = NO_MOVE // 2, 0
        for i in range(num_bad):
            v = state.bad_N[i]
            own = wide(state.gamma_NK[v, state.colours_N[v]])
            enough = best - conflicts + own - 1
            least = fewest(state.gamma_NK[v], tabu_NK[v], move, enough)
            if least - own < lowest:
                lowest, num_ties = least - own, 0
            if least - own == lowest:
                for c in range(k):
                    if state.gamma_NK[v, c] == least and is_open(least, tabu_NK[v, c], move, enough):
                        ties_T[num_ties] = v * k + c
                        num_ties += 1
        if num_ties == 0:
            continue  # every move is tabu: the tenures run down
        chosen = ties_T[draw(key, n + 2 * move, num_ties)]
        node, new = chosen // k, chosen % k
        tenure = draw(key, n + 2 * move + 1, TENURE_RANDOM) + wide(TENURE_PER_CONFLICT * num_bad)
        tabu_NK[node, state.colours_N[node]] = move + tenure
        tabu_NK[node, new] = FOREVER
        num_bad = recolour(state, num_bad, node, new)
        conflicts += lowest
        if conflicts < best:
            best = conflicts
            for v in range(n):
                best_N[v] = state.colours_N[v]
    progress[0].move, progress[0].conflicts = move, conflicts
    progress[0].num_bad, progress[0].best = num_bad, best
