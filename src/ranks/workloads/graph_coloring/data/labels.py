"""What is known of a graph: bounds of its chromatic number with a colouring, and how hard TabuCol found it.

No clock decides a label: every search has a fixed number of steps, so a label is a pure function of the graph and of
what its construction proves. No label is among the net's features.

Legend: N nodes, E undirected edges, F features.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

import numpy as np

from ranks.workloads.graph_coloring.data.made import Made
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.features import FEATURES
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

SMALL_NODES = 60
SMALL_BRANCHES, LARGE_BRANCHES = 20_000_000, 20_000
"""Branches of the exact search, for graphs of up to 60 nodes and for larger ones."""
IMPROVE_MOVES = 30_000
"""TabuCol's, to find a colouring with one colour less."""
MOST_SEARCHED_NODES = 5000
"""Larger graphs, which only a user's own folder can hold, get greedy bounds and no difficulty."""
MEASURE_MOVES, MEASURE_SEEDS = 30_000, 3
"""TabuCol's, to measure the difficulty: no more moves from each start; the median of so many starts."""


@dataclass(frozen=True)
class Labels:
    """low <= chromatic number <= high. `colours_N`: int64[N], a proper colouring with the colours 0..high-1.

    `difficulty`: log10(1 + moves) of TabuCol with `high` colours, NaN where it was not measured.
    """

    low: int
    high: int
    colours_N: Ints
    difficulty: float


def full_labels(made: Made) -> Labels:
    """Chromatic numbers by construction, exact search, cliques and TabuCol; difficulty measured. Needs Numba."""
    from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
    from ranks.workloads.graph_coloring.classical.exact import chromatic_bounds
    from ranks.workloads.graph_coloring.classical.greedy import dsatur
    from ranks.workloads.graph_coloring.classical.tabucol import tabucol

    graph, low, colours_N = made.graph, made.low, made.colours_N
    if graph.n > MOST_SEARCHED_NODES:
        greedy_N = dsatur(graph)
        return checked(graph, Labels(len(greedy_clique(graph)), num_colours(greedy_N), greedy_N, math.nan))
    if colours_N is None or made.low < made.high:
        bounds = chromatic_bounds(graph, SMALL_BRANCHES if graph.n <= SMALL_NODES else LARGE_BRANCHES)
        low = max(low, bounds.low)
        colours_N = bounds.colours_N if colours_N is None or bounds.high < made.high else colours_N
    colours_N = numbered(colours_N)
    while low < (high := num_colours(colours_N)):
        fewer = tabucol(graph, high - 1, seed=1, max_moves=IMPROVE_MOVES)
        if fewer.conflicts:
            break
        colours_N = numbered(fewer.colours_N)
    high = num_colours(colours_N)
    moves = [tabucol(graph, high, seed=2 + i, max_moves=MEASURE_MOVES).moves for i in range(MEASURE_SEEDS)]
    return checked(graph, Labels(low, high, colours_N, math.log10(1 + statistics.median(moves))))


def bound_labels(made: Made, features_NF: Ints32) -> Labels:
    """What NumPy alone can tell: a clique, a greedy colouring, and what the construction proves; no difficulty."""
    graph, colours_N = made.graph, made.colours_N
    if colours_N is None:
        colours_N = smallest_last(graph)
    colours_N = numbered(colours_N)
    low = max(made.low, int(features_NF[:, FEATURES.index("clique")].max()))
    return checked(graph, Labels(low, num_colours(colours_N), colours_N, math.nan))


def checked(graph: Graph, labels: Labels) -> Labels:
    """The labels, if the independent checker finds their colouring proper and their bounds the right way round."""
    wrong = problems(graph.n, graph.edges_E2.tolist(), labels.colours_N.tolist(), labels.high)
    if wrong or labels.low > labels.high:
        raise AssertionError(f"labels of a graph with {graph.n} nodes: {labels.low}..{labels.high}, {wrong[:3]}")
    return labels


def num_colours(colours_N: Ints) -> int:
    """How many colours there are, where none of 0..k-1 is left out."""
    return int(colours_N.max()) + 1


def numbered(colours_N: Ints) -> Ints:
    """The same colouring with the colours 0..k-1."""
    return np.unique(colours_N, return_inverse=True)[1].astype(np.int64).ravel()


def smallest_last(graph: Graph) -> Ints:
    """Greedy colouring int64[N] in smallest-last order: at most degeneracy + 1 colours (Matula & Beck 1983).

    A node takes its place from the end as the one with the fewest neighbours among those that have none yet.
    """
    neighbours = [near.tolist() for near in graph.neighbours()]
    left_N = graph.degrees()
    order: list[int] = []
    for _ in range(graph.n):
        v = int(left_N.argmin())
        order.append(v)
        left_N[neighbours[v]] -= 1
        left_N[v] = 2 * graph.n
    colours_N = np.full(graph.n, -1)
    for v in reversed(order):
        taken = {int(colours_N[u]) for u in neighbours[v]}
        colours_N[v] = next(c for c in range(graph.n) if c not in taken)
    return colours_N
