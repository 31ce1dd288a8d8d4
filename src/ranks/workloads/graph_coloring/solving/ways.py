"""Ways to colour a graph within a time, all of one form, so that they can stand beside each other.

All that search share one loop, `descend`: the same reduction, the same clique bound, the same clock.

Legend: N nodes, C nodes of a reduced graph.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ranks.engine.sharding.rng import key
from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.conflicts import random_colours
from ranks.workloads.graph_coloring.classical.greedy import dsatur, largest_first, num_colours
from ranks.workloads.graph_coloring.classical.reduction import reduce
from ranks.workloads.graph_coloring.classical.repair import Repaired, repair
from ranks.workloads.graph_coloring.classical.tabucol import TabuResult, tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.solving.other_k import with_fewer_colours, with_more_colours

REDUCED, OPENED = "by the reduction alone", "with new colours"
CLIMBING_SHARE = 0.125
"""Of the time that is left, for one attempt as long as nothing proper is found."""
FIRST_MOVES_PER_NODE = 2_000
"""TabuCol's moves from the first start; each further start gets twice as many as the one before."""


@dataclass(frozen=True)
class Answer:
    """The best colouring that a way found. It is proper only where `conflicts` is 0."""

    colours_N: Ints
    conflicts: int
    seconds: float
    """Wall time from the call to the answer, all that the way does included."""
    cpu_s: float
    """CPU time of the whole process in these seconds."""
    moves: int = 0
    """Moves of the local search, where there is one."""
    note: str = ""
    """What a reader should know of this answer."""
    found_s: float | None = None
    """Wall time from the call to the moment when this colouring was found, where it is known."""
    optimal: bool = False
    """A clique of as many nodes proves that fewer colours cannot do."""

    @property
    def num_colours(self) -> int:
        return num_colours(self.colours_N)


Way = Callable[[Graph, float, int], Answer]
"""(graph, budget in seconds, seed) -> Answer."""
Attempt = Callable[[Graph, int, float, int, Ints | None], tuple[Ints, int]]
"""(core graph, k, seconds allowed, seed, the best proper colouring so far int64[C], with more than k colours) ->
(colours int64[C] below k, conflicts)."""


def descend(
    graph: Graph,
    budget_s: float,
    seed: int,
    attempt: Attempt,
    *,
    start: Callable[[Graph], Ints] | None = None,
    first_k: int = 1,
    only_k: int | None = None,
    reduces: bool = True,
    opens: bool = False,
) -> Answer:
    """The fewest colours within the budget: one less than the last proper colouring used, again and again.

    Begins below the proper colouring that `start` makes, or without one at `first_k` colours; as long as nothing proper
    is found, attempts are short, and k grows by a quarter after each. With `only_k` it stays there, and the first
    proper colouring is the answer. The loop ends where a clique proves that k colours cannot do.

    An attempt works on the graph without the nodes that can always be coloured last: where none is left, that is a
    greedy colouring. With `reduces=False` it works on the whole graph. With `opens` an attempt that leaves conflicts is
    made proper by `with_more_colours`, and the next k lies half-way to the largest that failed.
    """
    begin, begin_cpu = time.perf_counter(), time.process_time()
    clique = len(greedy_clique(graph))
    best_N, best_conflicts, found_s, note = np.zeros(graph.n, dtype=np.int64), graph.num_edges, None, ""
    k = max(clique, first_k) if only_k is None else only_k
    if start is not None and only_k is None:
        best_N, best_conflicts, found_s = start(graph), 0, time.perf_counter() - begin
        k = num_colours(best_N) - 1
    trial, failed_k = 0, clique - 1
    while k >= clique and (left_s := budget_s - (time.perf_counter() - begin)) > 0:
        reduced = reduce(graph, k) if reduces else None
        core = reduced.core if reduced is not None else graph
        core_C, conflicts = np.zeros(0, dtype=np.int64), 0
        if core.n:
            near_the_end = only_k is not None or (best_conflicts == 0 and k == num_colours(best_N) - 1)
            allowed_s = left_s * (1.0 if near_the_end else CLIMBING_SHARE)
            core_seed = key(seed, f"descend/{k}", trial) & (2**63 - 1)
            known_N = best_N if best_conflicts == 0 else None
            known_C = known_N if known_N is None or reduced is None else known_N[reduced.nodes_C]
            core_C, conflicts = attempt(core, k, allowed_s, core_seed, known_C)
        trial += 1
        found_N, opened = core_C if reduced is None else reduced.extend(core_C), False
        if conflicts:
            failed_k = max(failed_k, k)
            if opens and only_k is None:
                found_N, conflicts, opened = with_more_colours(graph, found_N), 0, True
        fewer = conflicts == 0 and num_colours(found_N) < num_colours(best_N)
        if found_s is None or conflicts < best_conflicts or fewer:
            best_N, best_conflicts, found_s = found_N, conflicts, time.perf_counter() - begin
            note = OPENED if opened else "" if core.n else REDUCED
        if only_k is not None:
            if conflicts == 0:
                break
        elif best_conflicts:
            k = min(graph.n, k + 1 + k // 4)
        else:
            most = num_colours(best_N) - 1
            k = (failed_k + 1 + most) // 2 if opens and failed_k < most else most
    optimal = best_conflicts == 0 and num_colours(best_N) == clique
    seconds, cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
    return Answer(best_N, best_conflicts, seconds, cpu_s, note=note, found_s=found_s, optimal=optimal)


def greedy(colour: Callable[[Graph], Ints]) -> Way:
    """A way that makes one colouring and searches no further."""

    def way(graph: Graph, budget_s: float, seed: int) -> Answer:
        del budget_s, seed
        begin, begin_cpu = time.perf_counter(), time.process_time()
        colours_N = colour(graph)
        seconds, cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
        return Answer(colours_N, graph.conflicts(colours_N), seconds, cpu_s, found_s=seconds)

    return way


def random_starts(n: int, k: int, seed: int) -> Iterator[Ints]:
    """int64[N] of random colours below k, without end."""
    for number in itertools.count():
        yield random_colours(n, k, key(seed, "random start", number) & (2**63 - 1)).astype(np.int64)


def within(seconds: float, starts: Iterable[Ints], clock: Callable[[], float] = time.perf_counter) -> Iterator[Ints]:
    """The starts that are asked for before the time is over, at least one."""
    deadline = clock() + seconds
    for start_N in starts:
        yield start_N
        if clock() >= deadline:
            return


def first_repaired(core: Graph, k: int, seed: int, starts: Iterable[Ints], max_moves: int | None = None) -> Repaired:
    """Of some starts, at least one, the first that its repair makes proper; else the best. `max_moves`: of a repair."""
    best: Repaired | None = None
    for number, start_C in enumerate(starts):
        fixed = repair(core, k, start_C, seed ^ number, max_moves)
        if best is None or fixed.conflicts < best.conflicts:
            best = fixed
        if fixed.conflicts == 0:
            break
    assert best is not None
    return best


def restarted_tabucol(
    core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None, starts: Iterator[Ints]
) -> tuple[TabuResult, int]:
    """(the best search, the moves of all searches): TabuCol from the known colouring with its smallest classes
    dissolved, where there is one; then from one of `starts` after the other, each time with twice the moves."""
    begin = time.perf_counter()
    if known_C is not None:
        starts = itertools.chain([with_fewer_colours(core, known_C, k)], starts)
    best: TabuResult | None = None
    allowed, made = FIRST_MOVES_PER_NODE * core.n, 0
    for number, start_C in enumerate(starts):
        left_s = max(seconds - (time.perf_counter() - begin), 0.0)
        found = tabucol(core, k, seed ^ number, max_moves=allowed, max_s=left_s, start_N=start_C)
        allowed, made = 2 * allowed, made + found.moves
        if best is None or found.conflicts < best.conflicts:
            best = found
        if found.conflicts == 0 or time.perf_counter() - begin >= seconds:
            break
    assert best is not None
    return best, made


def tabucol_descent(graph: Graph, budget_s: float, seed: int) -> Answer:
    """TabuCol from DSATUR's colouring downwards: what net + TabuCol does, without a net."""
    moves = 0

    def attempt(core: Graph, k: int, left_s: float, core_seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        nonlocal moves
        found, made = restarted_tabucol(core, k, left_s, core_seed, known_C, random_starts(core.n, k, core_seed))
        moves += made
        return found.colours_N, found.conflicts

    return replace(descend(graph, budget_s, seed, attempt, start=dsatur), moves=moves)


def random_repaired(graph: Graph, budget_s: float, seed: int) -> Answer:
    """What net + repair does, with random colours in place of the net's: what the repair and the loop do alone."""

    def attempt(core: Graph, k: int, left_s: float, core_seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        del known_C
        fixed = first_repaired(core, k, core_seed, within(left_s, random_starts(core.n, k, core_seed)))
        return fixed.colours_N, fixed.conflicts

    return descend(graph, budget_s, seed, attempt, reduces=False, opens=True)


CLASSICAL: dict[str, Way] = {
    "largest-first": greedy(largest_first),
    "DSATUR": greedy(dsatur),
    "TabuCol": tabucol_descent,
    "random + repair": random_repaired,
}
