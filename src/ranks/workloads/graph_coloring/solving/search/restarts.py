"""Local search from many starts: random colourings, repair of each, TabuCol with restarts.

Legend: N nodes, C nodes of the k-core.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ranks.engine.sharding.rng import key
from ranks.workloads.graph_coloring.classical.colouring_state import random_colours
from ranks.workloads.graph_coloring.classical.repair import RepairResult, repair
from ranks.workloads.graph_coloring.classical.tabucol import TabuResult, tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.solving.budget import WALL, SearchClock
from ranks.workloads.graph_coloring.solving.search.change_colours import with_fewer_colours

FIRST_MOVES_PER_NODE = 2_000
"""Moves of TabuCol from the first start, per node; they double with each further start."""


def random_starts(n: int, k: int, seed: int) -> Iterator[Ints]:
    """An endless sequence of random colourings int64[N] with k colours."""
    for number in itertools.count():
        yield random_colours(n, k, key(seed, "random start", number) & (2**63 - 1)).astype(np.int64)


def until_deadline(seconds: float, starts: Iterable[Ints], clock: Callable[[], float] | None = None) -> Iterator[Ints]:
    """The starts that are asked for before the time is over, at least one."""
    clock = clock or time.perf_counter
    deadline = clock() + seconds
    for start_N in starts:
        yield start_N
        if clock() >= deadline:
            return


def repair_until_proper(
    core: Graph, k: int, seed: int, starts: Iterable[Ints], max_moves: int | None = None, clock: SearchClock = WALL
) -> RepairResult:
    """Repairs one start after the other until one is proper; returns that one, else the best.

    Needs at least one start.

    `max_moves`: the limit of each repair. `clock`: is charged 2n moves for each.
    """
    best: RepairResult | None = None
    for number, start_C in enumerate(starts):
        found = repair(core, k, start_C, seed ^ number, max_moves)
        clock.charge(2 * core.n)
        if best is None or found.conflicts < best.conflicts:
            best = found
        if found.conflicts == 0:
            break
    assert best is not None
    return best


def restarted_tabucol(
    core: Graph,
    k: int,
    seconds: float,
    seed: int,
    known_C: Ints | None,
    starts: Iterator[Ints],
    clock: SearchClock = WALL,
) -> tuple[TabuResult, int]:
    """TabuCol from one start after the other: (the best result, the moves of all).

    Each start gets twice the moves of the one before.

    The first start is the known colouring with its smallest classes dissolved, if there is one; the
    others are `starts`.
    """
    start_s = clock()
    if known_C is not None:
        starts = itertools.chain([with_fewer_colours(core, known_C, k)], starts)
    best: TabuResult | None = None
    allowed, moves = FIRST_MOVES_PER_NODE * core.n, 0
    for number, start_C in enumerate(starts):
        max_moves, max_s = clock.limits(allowed, max(seconds - (clock() - start_s), 0.0))
        found = tabucol(core, k, seed ^ number, max_moves=max_moves, max_s=max_s, start_N=start_C)
        clock.charge(found.moves + core.n)
        allowed, moves = 2 * allowed, moves + found.moves
        if best is None or found.conflicts < best.conflicts:
            best = found
        if found.conflicts == 0 or clock() - start_s >= seconds:
            break
    assert best is not None
    return best, moves
