"""The loop of all searching solvers: find a proper colouring, then try with fewer colours.

All solvers get the same reduction to the k-core, the same clique bound and the same clock.

Legend: N nodes, C nodes of the k-core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ranks.engine.sharding.rng import key
from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.greedy import num_colours
from ranks.workloads.graph_coloring.classical.reduction import reduce_to_core
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.solving.budget import WALL, SearchClock
from ranks.workloads.graph_coloring.solving.search.change_colours import with_more_colours

BY_REDUCTION, WITH_MORE_COLOURS = "by the reduction to the k-core alone", "with additional colours"
"""Notes of a result: how its colouring came about, where no attempt made it."""
INCREASE_SHARE = 0.125
"""Share of the remaining time for one attempt as long as no proper colouring is found."""


@dataclass(frozen=True)
class SolverResult:
    """The best colouring that a solver found. It is proper only if `conflicts` is 0."""

    colours_N: Ints
    conflicts: int
    seconds: float
    """Time of the whole call, by the clock of the search."""
    cpu_s: float
    """CPU time of the whole process in that time."""
    moves: int = 0
    """Moves of the local search, if the solver counts them."""
    note: str = ""
    """A remark for the reader of a table."""
    found_s: float | None = None
    """Time until this colouring was found, if known."""
    optimal: bool = False
    """Whether a clique with as many nodes proves that fewer colours are impossible."""

    @property
    def num_colours(self) -> int:
        return num_colours(self.colours_N)


Attempt = Callable[[Graph, int, float, int, Ints | None], tuple[Ints, int]]
"""One search with k colours: (core graph, k, seconds allowed, seed, the best proper colouring so
far int64[C], which has more than k colours) -> (colours int64[C] below k, conflicts)."""


def decrease_colours(
    graph: Graph,
    budget_s: float,
    seed: int,
    attempt: Attempt,
    *,
    start: Callable[[Graph], Ints] | None = None,
    first_k: int = 1,
    only_k: int | None = None,
    reduces: bool = True,
    adds_colours: bool = False,
    hint_N: Ints | None = None,
    clock: SearchClock = WALL,
) -> SolverResult:
    """Searches for colourings with fewer and fewer colours within the time; returns the best one.

    The first k is one below the colours of `start(graph)`, or `first_k` without `start`. After each
    proper colouring k is one less than the colours it uses. Until there is one, attempts are short
    and k grows by a quarter each time. The loop ends if a clique proves that k colours are
    impossible. With `only_k`, k is fixed, and the loop ends with the first proper colouring.

    `reduces`: an attempt gets only the k-core; the other nodes are coloured greedily afterwards. If
    the core is empty, the colouring is greedy altogether. `adds_colours`: an attempt that leaves
    conflicts is made proper by `with_more_colours`; the next k is then halfway between the largest
    k that failed and the best so far. `hint_N`: what
    attempts get until a proper colouring is found. `clock`: in its unit are `budget_s` and all
    times.
    """
    start_s, start_cpu_s = clock(), time.process_time()
    clique = len(greedy_clique(graph))
    best_N, best_conflicts, found_s, note = np.zeros(graph.n, dtype=np.int64), graph.num_edges, None, ""
    k = max(clique, first_k) if only_k is None else only_k
    if start is not None and only_k is None:
        best_N, best_conflicts, found_s = start(graph), 0, clock() - start_s
        k = num_colours(best_N) - 1
    trial, failed_k = 0, clique - 1
    while k >= clique and (left_s := budget_s - (clock() - start_s)) > 0:
        # one attempt with k colours, on the core
        reduction = reduce_to_core(graph, k) if reduces else None
        core = reduction.core if reduction is not None else graph
        core_C, conflicts = np.zeros(0, dtype=np.int64), 0
        if core.n:
            may_be_the_last = only_k is not None or (best_conflicts == 0 and k == num_colours(best_N) - 1)
            allowed_s = left_s * (1.0 if may_be_the_last else INCREASE_SHARE)
            # results depend on this purpose string: do not rename it
            core_seed = key(seed, f"descend/{k}", trial) & (2**63 - 1)
            known_N = best_N if best_conflicts == 0 else hint_N
            known_C = known_N if known_N is None or reduction is None else known_N[reduction.nodes_C]
            core_C, conflicts = attempt(core, k, allowed_s, core_seed, known_C)
        clock.charge(graph.n)
        trial += 1

        # extend it to the whole graph, and keep it if it is better
        found_N, added = core_C if reduction is None else reduction.extend(core_C), False
        if conflicts:
            failed_k = max(failed_k, k)
            if adds_colours and only_k is None:
                found_N, conflicts, added = with_more_colours(graph, found_N), 0, True
        fewer = conflicts == 0 and num_colours(found_N) < num_colours(best_N)
        if found_s is None or conflicts < best_conflicts or fewer:
            best_N, best_conflicts, found_s = found_N, conflicts, clock() - start_s
            note = WITH_MORE_COLOURS if added else "" if core.n else BY_REDUCTION

        # choose the next k
        if only_k is not None:
            if conflicts == 0:
                break
        elif best_conflicts:
            k = min(graph.n, k + 1 + k // 4)
        else:
            below = num_colours(best_N) - 1
            k = (failed_k + 1 + below) // 2 if adds_colours and failed_k < below else below
    optimal = best_conflicts == 0 and num_colours(best_N) == clique
    seconds, cpu_s = clock() - start_s, time.process_time() - start_cpu_s
    return SolverResult(best_N, best_conflicts, seconds, cpu_s, note=note, found_s=found_s, optimal=optimal)
