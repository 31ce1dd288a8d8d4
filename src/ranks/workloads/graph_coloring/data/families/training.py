"""The graph families of training and validation.

- threshold: random graphs near the 3-colouring threshold, up to 120 nodes exactly at it.
- planted: random graphs with a planted colouring.
- flat: a planted colouring, with about equal degrees.
- queen, mycielski, kneser: see structured.py.
- interval: interval graphs. geometric: random geometric graphs. random: small random graphs of any
  density.

Legend: N nodes, E undirected edges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ranks.workloads.graph_coloring.data.families.generators import (
    Family,
    GeneratedGraph,
    partite_graph,
    random_degree,
    random_graph,
    random_num_colours,
    threshold_degree,
    without_bounds,
)
from ranks.workloads.graph_coloring.data.families.structured import kneser, mycielski, queen
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

MAX_EXACT_NODES = 120
"""Up to this size exact search adds edges until a graph is exactly at the threshold."""
THRESHOLD_DEGREE = (3.5, 4.6)
"""Average degrees of larger random graphs near the threshold, which is about 4.69."""
MIN_THRESHOLD_NODES = 40
"""Smaller graphs at the threshold are easy; generated only if `max_nodes` allows no larger ones."""
NEAR_SHARE, BEYOND_SHARE = 0.35, 0.15
"""Shares of the threshold graphs that are only near the threshold, and that have one edge too many."""
PLANTED_DEGREE = (0.6, 1.0)
"""Average degree of planted graphs, relative to the threshold of their number of colours."""


def threshold(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A random graph at the 3-colouring threshold: 3-colourable, but not with one more edge.

    Some graphs include that edge, so they need 4 colours; others are only near the threshold.
    """
    kind = rng.random()
    if n > MAX_EXACT_NODES or kind < NEAR_SHARE:
        return near_threshold(rng, n)
    # imported here because exact search needs Numba, which graphs with labels="bounds" do without
    from ranks.workloads.graph_coloring.classical.exact import k_colour
    from ranks.workloads.graph_coloring.data.families.hard_instances import hard_three_colourable

    graph = hard_three_colourable(int(rng.integers(2**62)), "family", n, 0)
    colours_N = k_colour(graph, 3)
    assert colours_N is not None
    if kind < 1 - BEYOND_SHARE:
        return GeneratedGraph(graph, 3, 3, colours_N)
    # pairs of nodes that have the same colour in all 3-colourings found so far; for at least one
    # pair this is always so
    same_P2 = rng.permutation(np.stack(np.triu_indices(n, 1), 1))
    more, found = graph, colours_N
    while found is not None:
        same_P2 = same_P2[found[same_P2[:, 0]] == found[same_P2[:, 1]]]
        more = Graph.of(n, np.concatenate([graph.edges_E2, same_P2[:1]]))
        found = k_colour(more, 3)
    fourth_N = colours_N.copy()
    fourth_N[same_P2[0, 0]] = 3
    return GeneratedGraph(more, 4, 4, fourth_N)


def near_threshold(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A random graph whose average degree is below the 3-colouring threshold by up to a quarter."""
    return without_bounds(random_graph(rng, n, round(rng.uniform(*THRESHOLD_DEGREE) * n / 2)))


def planted(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A random graph with a planted colouring of nearly equal classes.

    Every second one contains a clique with one node of each class, so that its chromatic number is
    known.
    """
    k = random_num_colours(rng, n)
    num_edges = round(rng.uniform(*PLANTED_DEGREE) * threshold_degree(k) * n / 2)
    return partite_graph(rng, rng.permutation(np.arange(n) % k), num_edges, clique=bool(rng.random() < 0.5))


def flat(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A flat graph: planted, and each node has about as many neighbours in each other class.

    Culberson & Luo 1996, "Exploring the k-colorable landscape with iterated greedy". Degrees reveal
    nothing.
    """
    k = random_num_colours(rng, n)
    class_N = rng.permutation(np.arange(n) % k)
    across = (n * n - (np.bincount(class_N) ** 2).sum()) / 2
    density = min(1.0, rng.uniform(*PLANTED_DEGREE) * threshold_degree(k) * n / 2 / across)
    members = [np.flatnonzero(class_N == c) for c in range(k)]
    pairs = [
        biregular(rng, members[b], members[c], round(density * len(members[b]) * len(members[c])))
        for c in range(k)
        for b in range(c)
    ]
    return GeneratedGraph(Graph.of(n, np.concatenate(pairs)), 1, k, class_N)


def biregular(rng: np.random.Generator, left_A: Ints, right_B: Ints, num_edges: int) -> Ints:
    """int64[num_edges, 2]: different pairs; degrees on one side differ by at most 1."""
    edge_E = np.arange(num_edges)
    shift_E = edge_E // math.lcm(len(left_A), len(right_B))
    left_E = rng.permutation(left_A)[edge_E % len(left_A)]
    right_E = rng.permutation(right_B)[(edge_E + shift_E) % len(right_B)]
    return np.stack([left_E, right_E], 1)


def interval(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """An interval graph: nodes are adjacent if their random intervals overlap.

    The chromatic number is the size of the largest clique; greedy colouring from left to right
    reaches it.
    """
    longest = random_degree(rng, n) / (n - 1)
    begin_N = np.sort(rng.random(n))
    end_N = begin_N + rng.uniform(0, longest, n)
    overlap_NN = np.triu(begin_N[None, :] < end_N[:, None], 1)
    colours_N = np.zeros(n, dtype=np.int64)
    free_from: list[float] = []
    for v, (begin, end) in enumerate(zip(begin_N.tolist(), end_N.tolist(), strict=True)):
        c = next((c for c, free in enumerate(free_from) if free <= begin), len(free_from))
        free_from[c : c + 1] = [end]
        colours_N[v] = c
    return GeneratedGraph(Graph.of(n, np.argwhere(overlap_NN)), len(free_from), len(free_from), colours_N)


def geometric(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """A random geometric graph: points in a square, adjacent if they are close."""
    points_N2 = rng.random((n, 2))
    reach_square = random_degree(rng, n) / ((n - 1) * math.pi)
    square_NN = ((points_N2[:, None] - points_N2[None]) ** 2).sum(-1)
    return without_bounds(Graph.of(n, np.argwhere(np.triu(square_NN < reach_square, 1))))


def small_random(rng: np.random.Generator, n: int) -> GeneratedGraph:
    """An Erdos-Renyi graph G(n, p) of random density from 0.1 to 0.9."""
    present_NN = rng.random((n, n)) < rng.uniform(0.1, 0.9)
    return without_bounds(Graph.of(n, np.argwhere(np.triu(present_NN, 1))))


FAMILIES: Mapping[str, Family] = {
    "threshold": Family(threshold, min_nodes=MIN_THRESHOLD_NODES),
    "planted": Family(planted, weight=1.4),
    "flat": Family(flat),
    "queen": Family(queen, max_nodes=280),
    "mycielski": Family(mycielski, weight=0.8),
    "kneser": Family(kneser, weight=0.8),
    "interval": Family(interval, weight=0.8),
    "geometric": Family(geometric),
    "random": Family(small_random, max_nodes=60),
}
"""In the order of the type logits of the net."""
WITHOUT_SEARCH: Mapping[str, Family] = {**FAMILIES, "threshold": Family(near_threshold, min_nodes=MIN_THRESHOLD_NODES)}
"""The same families without exact search, for a machine without Numba."""
