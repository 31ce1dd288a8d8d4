"""The families of graphs for training and validation.

`threshold`: random graphs near the 3-colouring threshold, up to 120 nodes one edge from it; `planted`: a hidden
colouring; `flat`: a hidden colouring, all degrees about equal; `queen`, `mycielski`, `kneser`: see structured.py;
`interval`: intervals that overlap; `geometric`: points that are near each other; `random`: small, of any density.

Legend: N nodes, E undirected edges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ranks.workloads.graph_coloring.data.made import (
    Family,
    Made,
    hidden_colours,
    partite_graph,
    random_degree,
    random_graph,
    threshold_degree,
    unproven,
)
from ranks.workloads.graph_coloring.data.structured import kneser, mycielski, queen
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

HARD_NODES = 120
"""Up to here graphs are taken to the very threshold by exact search."""
THRESHOLD_DEGREE = (3.5, 4.6)
"""Average degrees of larger random graphs near the threshold, which lies at about 4.69."""
EASY_NODES = 40
"""Smaller graphs at the threshold are easy; they are drawn only where no larger ones are asked for."""
NEAR_SHARE, BEYOND_SHARE = 0.35, 0.15
"""Of the threshold's graphs: shares that are only near it, and that have one edge too many."""
HIDDEN_DEGREE = (0.6, 1.0)
"""Average degrees of graphs with a hidden colouring, against the threshold of as many colours."""


def threshold(rng: np.random.Generator, n: int) -> Made:
    """A 3-colourable graph that one more edge makes not 3-colourable; or with that edge; or one that is only near."""
    kind = rng.random()
    if n > HARD_NODES or kind < NEAR_SHARE:
        return near_threshold(rng, n)
    # exact search is compiled by Numba, which a machine that makes no full labels need not have
    from ranks.workloads.graph_coloring.classical.exact import k_colour
    from ranks.workloads.graph_coloring.data.hard_instances import hard_three_colourable

    graph = hard_three_colourable(int(rng.integers(2**62)), "family", n, 0)
    colours_N = k_colour(graph, 3)
    assert colours_N is not None
    if kind < 1 - BEYOND_SHARE:
        return Made(graph, 3, 3, colours_N)
    # pairs that all 3-colourings met so far colour alike; at least one pair is coloured alike by all there are
    alike_P2 = rng.permutation(np.stack(np.triu_indices(n, 1), 1))
    more, found = graph, colours_N
    while found is not None:
        alike_P2 = alike_P2[found[alike_P2[:, 0]] == found[alike_P2[:, 1]]]
        more = Graph.of(n, np.concatenate([graph.edges_E2, alike_P2[:1]]))
        found = k_colour(more, 3)
    fourth_N = colours_N.copy()
    fourth_N[alike_P2[0, 0]] = 3
    return Made(more, 4, 4, fourth_N)


def near_threshold(rng: np.random.Generator, n: int) -> Made:
    """A random graph whose average degree lies below the 3-colouring threshold, by less than a quarter."""
    return unproven(random_graph(rng, n, round(rng.uniform(*THRESHOLD_DEGREE) * n / 2)))


def planted(rng: np.random.Generator, n: int) -> Made:
    """A random graph with a hidden colouring of nearly equal classes; every second one with a clique of one node each,
    so that its chromatic number is known."""
    k = hidden_colours(rng, n)
    num_edges = round(rng.uniform(*HIDDEN_DEGREE) * threshold_degree(k) * n / 2)
    return partite_graph(rng, rng.permutation(np.arange(n) % k), num_edges, clique=bool(rng.random() < 0.5))


def flat(rng: np.random.Generator, n: int) -> Made:
    """A hidden colouring where nodes have about equally many neighbours in each other class (Culberson & Luo 1996,
    "Exploring the k-colorable landscape with iterated greedy"): no node stands out by its degree."""
    k = hidden_colours(rng, n)
    class_N = rng.permutation(np.arange(n) % k)
    across = (n * n - (np.bincount(class_N) ** 2).sum()) / 2
    density = min(1.0, rng.uniform(*HIDDEN_DEGREE) * threshold_degree(k) * n / 2 / across)
    members = [np.flatnonzero(class_N == c) for c in range(k)]
    pairs = [
        biregular(rng, members[b], members[c], round(density * len(members[b]) * len(members[c])))
        for c in range(k)
        for b in range(c)
    ]
    return Made(Graph.of(n, np.concatenate(pairs)), 1, k, class_N)


def biregular(rng: np.random.Generator, left_A: Ints, right_B: Ints, num_edges: int) -> Ints:
    """int64[num_edges, 2]: different pairs; nodes of one side have as many as others, or one more."""
    turn_E = np.arange(num_edges)
    shift_E = turn_E // math.lcm(len(left_A), len(right_B))
    left_E = rng.permutation(left_A)[turn_E % len(left_A)]
    right_E = rng.permutation(right_B)[(turn_E + shift_E) % len(right_B)]
    return np.stack([left_E, right_E], 1)


def interval(rng: np.random.Generator, n: int) -> Made:
    """Random intervals, joined where they overlap: chromatic number = largest clique, reached from left to right."""
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
    return Made(Graph.of(n, np.argwhere(overlap_NN)), len(free_from), len(free_from), colours_N)


def geometric(rng: np.random.Generator, n: int) -> Made:
    """Random points of a square, joined where they are near each other."""
    points_N2 = rng.random((n, 2))
    reach_square = random_degree(rng, n) / ((n - 1) * math.pi)
    square_NN = ((points_N2[:, None] - points_N2[None]) ** 2).sum(-1)
    return unproven(Graph.of(n, np.argwhere(np.triu(square_NN < reach_square, 1))))


def small_random(rng: np.random.Generator, n: int) -> Made:
    """G(n, p) of any density from 0.1 to 0.9."""
    present_NN = rng.random((n, n)) < rng.uniform(0.1, 0.9)
    return unproven(Graph.of(n, np.argwhere(np.triu(present_NN, 1))))


FAMILIES: Mapping[str, Family] = {
    "threshold": Family(threshold, least=EASY_NODES),
    "planted": Family(planted, share=1.4),
    "flat": Family(flat),
    "queen": Family(queen, most=280),
    "mycielski": Family(mycielski, share=0.8),
    "kneser": Family(kneser, share=0.8),
    "interval": Family(interval, share=0.8),
    "geometric": Family(geometric),
    "random": Family(small_random, most=60),
}
"""In the order of the net's types."""
WITHOUT_SEARCH: Mapping[str, Family] = {**FAMILIES, "threshold": Family(near_threshold, least=EASY_NODES)}
"""The same, made without exact search."""
