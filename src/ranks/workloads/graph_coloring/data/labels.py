"""Labels of a graph: bounds of its chromatic number, a colouring, and its difficulty for TabuCol.

Every search has a fixed number of steps and no time limit, so the labels depend only on the graph
and on what its construction proves. No label is among the features of the net.

Legend: N nodes, E undirected edges, F features.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

import numpy as np

from ranks.workloads.graph_coloring.data.families.generators import GeneratedGraph
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.features import FEATURES
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

SMALL_NODES = 60
SMALL_BRANCHES, LARGE_BRANCHES = 20_000_000, 20_000
"""Maximum branches of the exact search, for graphs of up to 60 nodes and for larger ones."""
IMPROVE_MOVES = 30_000
"""Moves of TabuCol in the search for a colouring with one colour less."""
MAX_SEARCHED_NODES = 5000
"""Larger graphs (only a user's folder can hold them) get greedy bounds and no difficulty."""
MEASURE_MOVES, MEASURE_SEEDS = 30_000, 3
"""The difficulty is the median of this many runs of TabuCol, each with at most this many moves."""


@dataclass(frozen=True)
class Labels:
    """Bounds of the chromatic number: low <= chromatic number <= high.

    `colours_N`: int64[N], a proper colouring with the colours 0..high-1. `difficulty`: log10(1 +
    moves) of TabuCol with `high` colours; NaN if it was not measured.
    """

    low: int
    high: int
    colours_N: Ints
    difficulty: float


def full_labels(generated: GeneratedGraph) -> Labels:
    """Labels from the construction, exact search, cliques and TabuCol, with a difficulty.

    Needs Numba.
    """
    from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
    from ranks.workloads.graph_coloring.classical.exact import chromatic_bounds
    from ranks.workloads.graph_coloring.classical.greedy import dsatur
    from ranks.workloads.graph_coloring.classical.tabucol import tabucol

    graph, low, colours_N = generated.graph, generated.low, generated.colours_N
    if graph.n > MAX_SEARCHED_NODES:
        greedy_N = dsatur(graph)
        return verified_labels(graph, Labels(len(greedy_clique(graph)), num_colours(greedy_N), greedy_N, math.nan))
    if colours_N is None or generated.low < generated.high:
        bounds = chromatic_bounds(graph, SMALL_BRANCHES if graph.n <= SMALL_NODES else LARGE_BRANCHES)
        low = max(low, bounds.low)
        colours_N = bounds.colours_N if colours_N is None or bounds.high < generated.high else colours_N
    colours_N = renumbered(colours_N)
    while low < (high := num_colours(colours_N)):
        fewer = tabucol(graph, high - 1, seed=1, max_moves=IMPROVE_MOVES)
        if fewer.conflicts:
            break
        colours_N = renumbered(fewer.colours_N)
    high = num_colours(colours_N)
    moves = [tabucol(graph, high, seed=2 + i, max_moves=MEASURE_MOVES).moves for i in range(MEASURE_SEEDS)]
    return verified_labels(graph, Labels(low, high, colours_N, math.log10(1 + statistics.median(moves))))


def bound_labels(generated: GeneratedGraph, features_NF: Ints32) -> Labels:
    """Labels with NumPy only: from a clique, a greedy colouring and the construction.

    The difficulty is not measured.
    """
    graph, colours_N = generated.graph, generated.colours_N
    if colours_N is None:
        colours_N = smallest_last(graph)
    colours_N = renumbered(colours_N)
    low = max(generated.low, int(features_NF[:, FEATURES.index("clique")].max()))
    return verified_labels(graph, Labels(low, num_colours(colours_N), colours_N, math.nan))


def verified_labels(graph: Graph, labels: Labels) -> Labels:
    """The labels, if the checker finds their colouring proper. Raises AssertionError otherwise."""
    wrong = problems(graph.n, graph.edges_E2.tolist(), labels.colours_N.tolist(), labels.high)
    if wrong or labels.low > labels.high:
        raise AssertionError(f"labels of a graph with {graph.n} nodes: {labels.low}..{labels.high}, {wrong[:3]}")
    return labels


def num_colours(colours_N: Ints) -> int:
    """The number of colours, if all of 0..k-1 are used."""
    return int(colours_N.max()) + 1


def renumbered(colours_N: Ints) -> Ints:
    """The same colouring with the colours renumbered 0..k-1."""
    return np.unique(colours_N, return_inverse=True)[1].astype(np.int64).ravel()


def smallest_last(graph: Graph) -> Ints:
    """Greedy colouring int64[N] in smallest-last order (Matula & Beck 1983).

    It uses at most degeneracy + 1 colours.

    The order is built from its end: the next node has the fewest neighbours among the remaining
    nodes.
    """
    neighbours = [adjacent.tolist() for adjacent in graph.neighbours()]
    left_N = graph.degrees()
    order: list[int] = []
    for _ in range(graph.n):
        v = int(left_N.argmin())
        order.append(v)
        left_N[neighbours[v]] -= 1
        left_N[v] = 2 * graph.n
    colours_N = np.full(graph.n, -1)
    for v in reversed(order):
        used = {int(colours_N[u]) for u in neighbours[v]}
        colours_N[v] = next(c for c in range(graph.n) if c not in used)
    return colours_N
