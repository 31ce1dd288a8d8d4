"""The classical solvers, all with the same signature, so that a bench can compare them.

Legend: N nodes, C nodes of the k-core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ranks.workloads.graph_coloring.classical.greedy import dsatur, largest_first
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.solving.search.decrease_colours import SolverResult, decrease_colours
from ranks.workloads.graph_coloring.solving.search.head_attempts import HeadAttempts
from ranks.workloads.graph_coloring.solving.search.restarts import (
    random_starts,
    repair_until_proper,
    restarted_tabucol,
    until_deadline,
)

Solver = Callable[[Graph, float, int], SolverResult]
"""(graph, budget in seconds, seed) -> SolverResult."""


def greedy_solver(colour: Callable[[Graph], Ints]) -> Solver:
    """A solver that returns a single greedy colouring."""

    def solve(graph: Graph, budget_s: float, seed: int) -> SolverResult:
        del budget_s, seed
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        colours_N = colour(graph)
        seconds, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
        return SolverResult(colours_N, graph.conflicts(colours_N), seconds, cpu_s, found_s=seconds)

    return solve


def tabucol_solver(graph: Graph, budget_s: float, seed: int) -> SolverResult:
    """TabuCol with fewer and fewer colours, from DSATUR's colouring: net + TabuCol without net."""
    moves = 0

    def attempt(core: Graph, k: int, left_s: float, core_seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        nonlocal moves
        starts = random_starts(core.n, k, core_seed)
        found, more = restarted_tabucol(core, k, left_s, core_seed, known_C, starts)
        moves += more
        return found.colours_N, found.conflicts

    return replace(decrease_colours(graph, budget_s, seed, attempt, start=dsatur), moves=moves)


def head_solver(graph: Graph, budget_s: float, seed: int) -> SolverResult:
    """TabuCol with fewer and fewer colours, from DSATUR's colouring; HEAD after its first failure."""
    attempts = HeadAttempts()
    return replace(decrease_colours(graph, budget_s, seed, attempts, start=dsatur), moves=attempts.moves)


def random_repair_solver(graph: Graph, budget_s: float, seed: int) -> SolverResult:
    """Repair of random colourings: net + repair with random colours in place of those of the net."""

    def attempt(core: Graph, k: int, left_s: float, core_seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        del known_C
        starts = until_deadline(left_s, random_starts(core.n, k, core_seed))
        found = repair_until_proper(core, k, core_seed, starts)
        return found.colours_N, found.conflicts

    return decrease_colours(graph, budget_s, seed, attempt, reduces=False, adds_colours=True)


CLASSICAL_SOLVERS: dict[str, Solver] = {
    "largest-first": greedy_solver(largest_first),
    "DSATUR": greedy_solver(dsatur),
    "TabuCol": tabucol_solver,
    "HEAD": head_solver,
    "random + repair": random_repair_solver,
}
