"""HEAD (Moalic & Gondran 2018, J. Heuristics 24): a memetic algorithm with two individuals.

In each generation the two individuals make two children by greedy partition crossover, and TabuCol
improves each child for a fixed number of moves. The improved children replace their parents. The
best individual of a cycle of ten generations is its elite. At the end of a cycle the elite of the
cycle before replaces the first individual, which keeps the two different. If they become equal
nevertheless, the search starts again: from this individual and random colours, and every seventh
time from random colours only. It also starts from random colours after 500 generations without
fewer conflicts. (The paper ends where the two are equal.)

Legend: N nodes, K colours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranks.splitmix64 import GOLDEN_GAMMA_U64, mix
from ranks.workloads.graph_coloring.classical.colouring_state import random_colours
from ranks.workloads.graph_coloring.classical.crossover import greedy_partition_crossover
from ranks.workloads.graph_coloring.classical.tabucol import FOREVER, TabuResult, tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

GENERATIONS_PER_CYCLE = 10
RESTARTS_WITH_RANDOM = 7
"""Every seventh restart begins from random colours only."""
MAX_STAGNATION = 500
"""Generations of a start without fewer conflicts before the next start."""
MOVES_PER_NODE = 12
"""Moves of TabuCol on each child, per node of the graph."""


@dataclass(frozen=True)
class HeadResult:
    """The best colouring that HEAD found.

    `colours_N`: int64. `conflicts`: its conflicting edges. `moves`: of TabuCol, in all.
    `generations`, `restarts`: in all. `seconds`: by the given clock.
    """

    colours_N: Ints
    conflicts: int
    moves: int
    generations: int
    restarts: int
    seconds: float


def head(
    graph: Graph,
    k: int,
    seed: int,
    *,
    max_moves: int | None = None,
    max_s: float | None = None,
    start_N: npt.ArrayLike | None = None,
    moves_per_child: int | None = None,
    clock: Callable[[], float] | None = None,
) -> HeadResult:
    """Searches a proper k-colouring until no edge conflicts or up to a limit.

    Give `max_moves`, `max_s` or both. `max_s`: seconds of wall time, or of another clock. Without
    `max_s` the result depends on the other arguments only. `start_N`: the first individual, by
    default random colours. `moves_per_child`: by default MOVES_PER_NODE x n. Raises ValueError as
    `tabucol` does.
    """
    if max_moves is None and max_s is None:
        raise ValueError("head needs max_moves or max_s")
    clock = clock or time.perf_counter
    start_s = clock()
    seeds = _Seeds(seed)
    each = moves_per_child or MOVES_PER_NODE * graph.n
    moves = generations = restarts = 0
    best: TabuResult | None = None

    def improved(colours_N: npt.ArrayLike) -> TabuResult:
        """The result of TabuCol from a child, within the limits."""
        nonlocal moves, best
        allowed = min(each, (FOREVER if max_moves is None else max_moves) - moves)
        left_s = None if max_s is None else max_s - (clock() - start_s)
        found = tabucol(graph, k, seeds.next(), max_moves=allowed, max_s=left_s, start_N=colours_N, clock=clock)
        moves += found.moves
        best = found if best is None or found.conflicts < best.conflicts else best
        return found

    def over() -> bool:
        out_of_moves = max_moves is not None and moves >= max_moves
        solved = best is not None and best.conflicts == 0
        return k == 1 or solved or out_of_moves or (max_s is not None and clock() - start_s >= max_s)

    def random() -> Ints:
        return random_colours(graph.n, k, seeds.next()).astype(np.int64)

    one = None if start_N is None else improved(start_N)
    while best is None or not over():
        one = improved(random()) if one is None else one
        two = one if over() else improved(random())
        last_elite, generation, fewest, fewest_at = one, 0, min(one.conflicts, two.conflicts), 0
        cycle: list[TabuResult] = []
        while not over() and not same_partition(one.colours_N, two.colours_N):
            child_N = greedy_partition_crossover(one.colours_N, two.colours_N, k, seeds.next())
            other_N = greedy_partition_crossover(two.colours_N, one.colours_N, k, seeds.next())
            one = improved(child_N)
            if over():
                break
            two = improved(other_N)
            cycle += [one, two]
            generation += 1
            if min(one.conflicts, two.conflicts) < fewest:
                fewest, fewest_at = min(one.conflicts, two.conflicts), generation
            if generation - fewest_at == MAX_STAGNATION:
                break
            if generation % GENERATIONS_PER_CYCLE == 0:
                elite = min(cycle, key=lambda individual: individual.conflicts)
                one, last_elite, cycle = last_elite, elite, []
        generations, restarts = generations + generation, restarts + 1
        stagnated = generation - fewest_at == MAX_STAGNATION
        one = None if stagnated or restarts % RESTARTS_WITH_RANDOM == 0 else one
    return HeadResult(best.colours_N, best.conflicts, moves, generations, max(0, restarts - 1), clock() - start_s)


def same_partition(a_N: Ints, b_N: Ints) -> bool:
    """Whether two colourings differ only in the names of the colours."""
    numbers = (a_N, b_N, a_N * (int(b_N.max(initial=0)) + 1) + b_N)
    a, b, pairs = (np.count_nonzero(np.bincount(number_N)) for number_N in numbers)
    return a == b == pairs


class _Seeds:
    """The seeds of a search: hashes of its seed and a counter."""

    def __init__(self, seed: int) -> None:
        self._state = mix(np.array([seed], np.uint64))

    def next(self) -> int:
        """Another seed, in 0..2**63-1."""
        self._state += GOLDEN_GAMMA_U64
        return int(mix(self._state)[0] >> np.uint64(1))
