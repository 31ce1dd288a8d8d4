"""TabuCol (Hertz & de Werra 1987, Computing 39): tabu search for a proper colouring with exactly k colours.

The tenure is that of Galinier & Hao 1999 (J. Comb. Optim. 3): random in 0..9, plus 0.6 x conflicting nodes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ranks.workloads.graph_coloring.graphs import Graph, Ints
from ranks.workloads.graph_coloring.local_search import Colouring

TENURE_RANDOM, TENURE_PER_CONFLICT = 10, 0.6


@dataclass(frozen=True)
class TabuResult:
    """`colours_N`: the best colouring seen. `conflicts`: its conflicting edges. `moves`: moves made."""

    colours_N: Ints
    conflicts: int
    moves: int


def tabucol(
    graph: Graph,
    k: int,
    rng: np.random.Generator,
    *,
    max_moves: int | None = None,
    max_cpu_s: float | None = None,
    start_N: Ints | None = None,
) -> TabuResult:
    """Searches from a random colouring, or from `start_N`, until no edge conflicts or a limit is met (give one)."""
    if max_moves is None and max_cpu_s is None:
        raise ValueError("tabucol needs max_moves or max_cpu_s")
    deadline = None if max_cpu_s is None else time.thread_time() + max_cpu_s
    state = Colouring(graph, k, rng.integers(0, k, graph.n) if start_N is None else start_N)
    tabu_NK = np.zeros((graph.n, k), dtype=np.int64)
    best, best_conflicts, move = state.colours_N.copy(), state.conflicts, 0
    impossible = graph.num_edges + 1
    while state.conflicts and k > 1:
        if (max_moves is not None and move >= max_moves) or (deadline is not None and time.thread_time() > deadline):
            break
        move += 1
        bad = np.flatnonzero(state.own_N)
        delta_MK = state.gamma_NK[bad] - state.own_N[bad, None]
        # a tabu move that beats the best colouring is allowed
        allowed = (tabu_NK[bad] < move) | (state.conflicts + delta_MK < best_conflicts)
        allowed[np.arange(len(bad)), state.colours_N[bad]] = False
        score_MK = np.where(allowed, delta_MK, impossible)
        lowest = int(score_MK.min())
        if lowest == impossible:
            continue  # every move is tabu: the tenures run down
        ties = np.flatnonzero(score_MK == lowest)
        row, colour = divmod(int(ties[rng.integers(len(ties))]), k)
        node = int(bad[row])
        tabu_NK[node, state.colours_N[node]] = move + rng.integers(TENURE_RANDOM) + int(TENURE_PER_CONFLICT * len(bad))
        state.recolour(node, colour)
        if state.conflicts < best_conflicts:
            best, best_conflicts = state.colours_N.copy(), state.conflicts
    return TabuResult(best, best_conflicts, move)
