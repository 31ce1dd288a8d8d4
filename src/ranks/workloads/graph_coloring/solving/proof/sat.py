"""Whether k colours are enough, decided by SAT solvers: CaDiCaL, and MiniSat as the second opinion.

The solvers come with the package python-sat (the extra `graph-coloring`). One variable says that a
node has a colour; each node has one, and the ends of an edge have different ones. A clique has the
first colours. Of the next nodes, in the order of their degrees, the first may use one more colour
than the clique, the second two more, and so on: other colourings differ only in the names of the
colours. "Impossible" counts only if MiniSat says so too. A colouring is checked by the caller.

Legend: N nodes, C nodes of a reduced graph.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.reduction import reduce_to_core
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.solving.budget import SearchClock
from ranks.workloads.graph_coloring.solving.proof.dominated import without_dominated

MAX_NODES, MAX_CLAUSES = 2_000, 20_000
"""Larger formulas are not tried: where they are hard at all, they are hopeless."""
LITERALS_PER_CALL = 2_000_000
"""A call of a solver gets this many conflicts, divided by the clauses: some hundredths of a second."""
MOVES_PER_CONFLICT = 20
"""Moves of TabuCol that take about as long as a conflict."""
FOREVER_S = 1e6


class Impossible(Exception):
    """No colouring with `k` colours exists. `why`: the proof, in words."""

    def __init__(self, k: int, why: str) -> None:
        super().__init__(k, why)
        self.k, self.why = k, why


def installed() -> bool:
    """Whether python-sat can be imported."""
    return importlib.util.find_spec("pysat") is not None


def small_enough(graph: Graph, k: int) -> bool:
    """Whether `decide` tries a graph: python-sat is installed, and the formula is small."""
    core = reduce_to_core(graph, k).core
    return installed() and core.n <= MAX_NODES and core.n * (1 + k) + core.num_edges * k <= MAX_CLAUSES


def decide(graph: Graph, k: int, seconds: float, clock: SearchClock) -> Ints | None:
    """A proper colouring int64[N] with k colours, or None if that was not decided in time.

    Raises Impossible if both solvers say that there is none. `seconds`: in the unit of the clock.
    """
    if not small_enough(graph, k):
        return None
    end_s = clock() + seconds
    reduction = reduce_to_core(graph, k)
    reduced = without_dominated(reduction.core)
    clauses = list(formula(reduced.core, k, greedy_clique(reduced.core)))
    decided, model = _by_cadical(clauses, end_s, clock)
    if decided:
        true_L = np.asarray(model) > 0
        colours_C = true_L[: reduced.core.n * k].reshape(reduced.core.n, k).argmax(1)
        return reduction.extend(reduced.extend(colours_C))
    if decided is None or (second := _by_minisat(clauses, end_s, clock)) is None:
        return None
    if second:
        raise AssertionError(f"CaDiCaL finds no colouring with {k} colours, and MiniSat finds one")
    raise Impossible(k, f"CaDiCaL and MiniSat both prove that {k} colours are too few")


def formula(graph: Graph, k: int, clique: Ints) -> Iterator[list[int]]:
    """The clauses; variable 1 + v * k + c says that node v has colour c."""
    for v in range(graph.n):
        yield [1 + v * k + c for c in range(k)]
    for u, v in graph.edges_E2.tolist():
        for c in range(k):
            yield [-(1 + u * k + c), -(1 + v * k + c)]
    for number, v in enumerate(clique.tolist()):
        yield [1 + v * k + number] if number < k else []  # an empty clause is a contradiction
    others = [v for v in np.argsort(-graph.degrees(), kind="stable").tolist() if v not in set(clique.tolist())]
    for number, v in enumerate(others):
        for c in range(len(clique) + number + 1, k):
            yield [-(1 + v * k + c)]


def _solver(name: str, clauses: list[list[int]]) -> Any:
    return importlib.import_module("pysat.solvers").Solver(name, bootstrap_with=clauses)


def _by_cadical(clauses: list[list[int]], end_s: float, clock: SearchClock) -> tuple[bool | None, list[int]]:
    """(whether there is a model, the model); None if the time is over before that is known."""
    conflicts_per_call = LITERALS_PER_CALL // (100 + len(clauses))
    solver = _solver("cadical195", clauses)
    with solver:
        satisfiable, conflicts = None, 0
        while satisfiable is None and clock() < end_s:
            solver.conf_budget(conflicts_per_call)
            satisfiable = solver.solve_limited()
            before, conflicts = conflicts, solver.accum_stats()["conflicts"]
            clock.charge(1 + (conflicts - before) * MOVES_PER_CONFLICT)
        return satisfiable, solver.get_model() if satisfiable else []


def _by_minisat(clauses: list[list[int]], end_s: float, clock: SearchClock) -> bool | None:
    """Whether there is a model; None if the time is over before that is known.

    One call, because each call of MiniSat begins with its shortest restarts.
    """
    solver = _solver("minisat22", clauses)
    max_moves, max_s = clock.limits(None, max(end_s - clock(), 0.0))
    timer = threading.Timer(FOREVER_S if max_s is None else max_s, solver.interrupt)
    timer.daemon = True
    with solver:
        if max_moves is not None:
            solver.conf_budget(1 + max_moves // MOVES_PER_CONFLICT)
        timer.start()
        satisfiable: bool | None = solver.solve_limited(expect_interrupt=True)
        timer.cancel()
        timer.join()
        clock.charge(solver.accum_stats()["conflicts"] * MOVES_PER_CONFLICT)
        return satisfiable
