"""Exact colouring by branch and bound, for graphs of some dozens of nodes (sparse ones: of some hundreds).

Nodes of degree below k are taken away before, and parts that do not touch are searched apart; see branching.py.

Legend: N nodes, C nodes of a core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ranks.workloads.graph_coloring.classical.branching import NONE, RUNNING, advance, plant
from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.classical.reduction import components, induced, reduce
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

BRANCHES_AT_ONCE = 1_000_000
"""After so many Python may hear a Ctrl-C."""
BRANCHES_AT_ONCE_BY_CLOCK = 2_000
"""Between two looks at a clock: some milliseconds."""
NO_LIMIT = 1 << 62
MAX_CORE = 20_000
"""Nodes of a connected core above which no search is begun: its bits would fill the memory."""
TABUCOL_MOVES = 5_000
"""For a colouring with one colour less."""


class NodeLimit(Exception):
    """The search looked at more nodes of its tree than it was allowed to."""


@dataclass(frozen=True)
class Bounds:
    """low <= chromatic number <= high. `colours_N`: int64, a proper colouring with `high` colours."""

    low: int
    high: int
    colours_N: Ints


def k_colour(graph: Graph, k: int, max_nodes: int | None = None) -> Ints | None:
    """A proper colouring int64[N] with the colours 0..k-1, or none if there is none, which is then proven.

    Raises NodeLimit after `max_nodes` branches (colours given to nodes), or if a connected core is above MAX_CORE.
    """
    return _search(graph, k, NO_LIMIT if max_nodes is None else max_nodes)[0]


def chromatic_number(graph: Graph, max_nodes: int | None = None) -> int:
    """The least number of colours, proven. An edgeless graph has 1, the empty graph 0. Raises NodeLimit."""
    bounds = chromatic_bounds(graph, NO_LIMIT if max_nodes is None else max_nodes)
    if bounds.low < bounds.high:
        raise NodeLimit
    return bounds.low


def chromatic_bounds(graph: Graph, max_nodes: int) -> Bounds:
    """What is known of the chromatic number after at most `max_nodes` branches: low == high where it is proven.

    From above: DSATUR, then TabuCol with one colour less each time it succeeds. From below: a clique, then the proof
    that `low` colours are too few, for low, low + 1, ... A pure function of the arguments.
    """
    colours_N = dsatur(graph)
    low, high = len(greedy_clique(graph)), num_colours(colours_N)
    while low < high and (fewer_N := _by_tabucol(graph, high - 1)) is not None:
        colours_N, high = fewer_N, num_colours(fewer_N)
    branches = 0
    while low < high:
        try:
            found_N, more = _search(graph, low, max_nodes - branches)
        except NodeLimit:
            break
        if found_N is not None:
            return Bounds(low, low, found_N)
        low, branches = low + 1, branches + more
    return Bounds(low, high, colours_N)


def searched_upwards(graph: Graph, low: int, high: int, stop: Callable[[], bool]) -> tuple[int, Ints | None]:
    """(low, none), and low is proven: no colouring has fewer colours; or (low, a colouring with so many).

    Given that fewer than `low` colours are too few, it searches for colourings with low, low + 1, ..., high - 1
    colours. It ends with the first, or where all are proven impossible, or soon after `stop` says so.
    """
    while low < high:
        try:
            found_N, _ = _search(graph, low, NO_LIMIT, stop)
        except NodeLimit:
            break
        if found_N is not None:
            return low, found_N
        low += 1
    return low, None


def _by_tabucol(graph: Graph, k: int) -> Ints | None:
    reduced = reduce(graph, k)
    found = tabucol(reduced.core, k, seed=0, max_moves=TABUCOL_MOVES)
    return reduced.extend(found.colours_N) if found.conflicts == 0 else None


def _search(graph: Graph, k: int, max_branches: int, stop: Callable[[], bool] | None = None) -> tuple[Ints | None, int]:
    """(a colouring or none, branches made). Raises NodeLimit, also where `stop` says so after some branches."""
    reduced = reduce(graph, k)
    colours_C, branches = np.zeros(reduced.core.n, np.int64), 0
    for nodes in components(reduced.core):
        found, more = _search_connected(induced(reduced.core, nodes), k, max_branches - branches, stop)
        branches += more
        if found is None:
            return None, branches
        colours_C[nodes] = found
    return reduced.extend(colours_C), branches


def _search_connected(
    graph: Graph, k: int, max_branches: int, stop: Callable[[], bool] | None
) -> tuple[Ints | None, int]:
    clique = greedy_clique(graph)
    if len(clique) > k:
        return None, 0
    if graph.n > MAX_CORE:
        raise NodeLimit
    tree = plant(graph, k, clique)
    branches, state = 0, RUNNING
    at_once = BRANCHES_AT_ONCE if stop is None else BRANCHES_AT_ONCE_BY_CLOCK
    while state == RUNNING:
        if branches >= max_branches or (branches and stop is not None and stop()):
            raise NodeLimit
        state, more = advance(tree, len(clique) - 1, min(at_once, max_branches - branches))
        branches += more
    if state == NONE:
        return None, branches
    colours_N = np.zeros(graph.n, np.int64)
    colours_N[tree.node_L] = tree.colour_L
    return colours_N, branches
