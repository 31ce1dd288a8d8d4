"""Exact colouring by branch and bound, for graphs of some dozens of nodes.

Sparse graphs may have some hundreds.

A search for k colours runs on the connected components of the k-core, one after the other; see
branching.py.

Legend: N nodes, C nodes of a core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ranks.workloads.graph_coloring.classical.branching import EXHAUSTED, RUNNING, continue_search
from ranks.workloads.graph_coloring.classical.branching_state import start_search
from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.classical.reduction import connected_components, induced_subgraph, reduce_to_core
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

BRANCHES_PER_CALL = 1_000_000
"""Branches of one kernel call; between calls Python can handle Ctrl-C."""
TIMED_BRANCHES_PER_CALL = 2_000
"""The same in a search with a time limit: some milliseconds."""
NO_LIMIT = 1 << 62
MAX_CORE = 20_000
"""The largest connected core that is searched; the bitsets of a larger one would fill the memory."""
TABUCOL_MOVES = 5_000
"""Moves of TabuCol in the search for a colouring with one colour less."""


class NodeLimit(Exception):
    """The search reached its limit of branches, of time or of size before it had a result."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of the chromatic number. `colours_N`: int64, a proper colouring of `high` colours."""

    low: int
    high: int
    colours_N: Ints


def k_colour(graph: Graph, k: int, max_nodes: int | None = None) -> Ints | None:
    """A proper colouring int64[N] with the colours 0..k-1; None proves that none exists.

    Raises NodeLimit after `max_nodes` branches (nodes of the search tree), or if a connected core
    exceeds MAX_CORE.
    """
    return _search(graph, k, NO_LIMIT if max_nodes is None else max_nodes)[0]


def chromatic_number(graph: Graph, max_nodes: int | None = None) -> int:
    """The chromatic number, proven. Raises NodeLimit.

    It is 1 for a graph without edges, 0 for the empty graph.
    """
    bounds = chromatic_bounds(graph, NO_LIMIT if max_nodes is None else max_nodes)
    if bounds.low < bounds.high:
        raise NodeLimit
    return bounds.low


def chromatic_bounds(graph: Graph, max_nodes: int) -> Bounds:
    """Bounds of the chromatic number after at most `max_nodes` branches.

    low == high if the chromatic number is proven.

    Upper bound: DSATUR, then TabuCol with one colour less each time it succeeds. Lower bound: a
    clique, then the proof that `low` colours do not suffice, for low, low + 1, ... The result
    depends on the arguments only.
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


def search_upwards(graph: Graph, low: int, high: int, stop: Callable[[], bool]) -> tuple[int, Ints | None]:
    """Searches for a colouring with low, low + 1, ..., high - 1 colours.

    `low` must be a lower bound of the chromatic number.

    Returns (k, a colouring with k colours), or (a lower bound, None) if all these numbers are
    proven impossible, or soon after `stop` returns true.
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
    reduction = reduce_to_core(graph, k)
    found = tabucol(reduction.core, k, seed=0, max_moves=TABUCOL_MOVES)
    return reduction.extend(found.colours_N) if found.conflicts == 0 else None


def _search(graph: Graph, k: int, max_branches: int, stop: Callable[[], bool] | None = None) -> tuple[Ints | None, int]:
    """(a colouring or None, branches made). Raises NodeLimit, also soon after `stop` returns true."""
    reduction = reduce_to_core(graph, k)
    colours_C, branches = np.zeros(reduction.core.n, np.int64), 0
    for nodes in connected_components(reduction.core):
        found, more = _search_connected(induced_subgraph(reduction.core, nodes), k, max_branches - branches, stop)
        branches += more
        if found is None:
            return None, branches
        colours_C[nodes] = found
    return reduction.extend(colours_C), branches


def _search_connected(
    graph: Graph, k: int, max_branches: int, stop: Callable[[], bool] | None
) -> tuple[Ints | None, int]:
    clique = greedy_clique(graph)
    if len(clique) > k:
        return None, 0
    if graph.n > MAX_CORE:
        raise NodeLimit
    state = start_search(graph, k, clique)
    branches, status = 0, RUNNING
    per_call = BRANCHES_PER_CALL if stop is None else TIMED_BRANCHES_PER_CALL
    while status == RUNNING:
        if branches >= max_branches or (branches and stop is not None and stop()):
            raise NodeLimit
        status, more = continue_search(state, len(clique) - 1, min(per_call, max_branches - branches))
        branches += more
    if status == EXHAUSTED:
        return None, branches
    colours_N = np.zeros(graph.n, np.int64)
    colours_N[state.node_L] = state.colour_L
    return colours_N, branches
