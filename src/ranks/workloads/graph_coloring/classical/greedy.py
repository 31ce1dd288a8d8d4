"""Greedy colouring: largest-first and DSATUR, the baselines of every comparison.

Legend: N nodes, D directed edges, W words of 64 bits.
"""

from __future__ import annotations

import math

import numpy as np

from ranks.jit import inlined, kernel
from ranks.workloads.graph_coloring.graphs.bitsets import ALL_ONES, Number, bit, contains, lowest_bit
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32


def largest_first(graph: Graph) -> Ints:
    """Greedy colouring int64[N], largest first (Welsh & Powell 1967).

    Nodes by descending degree get the lowest free colour.

    The lower node wins ties.
    """
    order_N = np.argsort(-graph.degrees(), kind="stable")
    colours_N = np.full(graph.n, -1)
    colour_in_order(*graph.csr(), order_N, colours_N)
    return colours_N


def dsatur(graph: Graph) -> Ints:
    """Greedy colouring int64[N] by saturation: DSATUR (Brelaz 1979).

    The uncoloured node of the highest saturation is next and gets the lowest free colour.

    The saturation of a node is the number of different colours of its neighbours. Ties go to the
    node with more uncoloured neighbours, then to the lower node.
    """
    # any greedy colouring with c colours has an edge between each two of them: c (c - 1) / 2 edges
    # or more
    max_colours = min(int(graph.degrees().max(initial=0)), math.isqrt(2 * graph.num_edges)) + 1
    return dsatur_of_rows(*graph.csr(), max_colours)


def num_colours(colours_N: Ints) -> int:
    """The number of different colours."""
    return len(np.unique(colours_N))


@kernel("void(int32[::1], int32[::1], int64[::1], int64[::1])")
def colour_in_order(starts: Ints32, neighbours: Ints32, order: Ints, colours_N: Ints) -> None:
    """Gives each node of `order` the lowest colour that no neighbour has. -1 means uncoloured."""
    seen_by = np.full(len(colours_N) + 1, -1)  # colour -> the last node with such a neighbour; the last entry is for -1
    for v in order:
        for i in range(starts[v], starts[v + 1]):
            seen_by[colours_N[neighbours[i]]] = v
        c = 0
        while seen_by[c] == v:
            c += 1
        colours_N[v] = c


@inlined
def _set_priority(priority: Ints, position: Number, new: Number) -> None:
    """Changes a leaf of the tournament tree and the maxima above it."""
    priority[position] = new
    while position > 1:
        position //= 2
        larger = max(priority[2 * position], priority[2 * position + 1])
        if priority[position] == larger:
            return
        priority[position] = larger


@kernel("int64[::1](int32[::1], int32[::1], int64)")
def dsatur_of_rows(starts: Ints32, neighbours: Ints32, max_colours: int) -> Ints:
    """DSATUR in O(D log N).

    The priority of a node is saturation * (n + 1) + uncoloured neighbours, and -1 once it is
    coloured. Priorities are the leaves of a tournament tree: each inner node holds the larger of
    its two children.
    """
    n = len(starts) - 1
    colours_N = np.full(n, -1)
    seen_NW = np.zeros((n, max_colours // 64 + 1), np.uint64)  # bitset of the colours of each node's neighbours
    num_leaves = 1
    while num_leaves < n:
        num_leaves *= 2
    priority = np.full(2 * num_leaves, -1)
    for v in range(n):
        priority[num_leaves + v] = starts[v + 1] - starts[v]
    for inner in range(num_leaves - 1, 0, -1):
        priority[inner] = max(priority[2 * inner], priority[2 * inner + 1])

    for _ in range(n):
        # Descend from the root to the leftmost leaf of the highest priority.
        position = 1
        while position < num_leaves:
            position = 2 * position if priority[2 * position] == priority[position] else 2 * position + 1
        v = position - num_leaves

        # Its colour is the lowest bit that is not set in the bitset of its neighbours' colours.
        w = 0
        while seen_NW[v, w] == ALL_ONES:
            w += 1
        c = 64 * w + lowest_bit(~seen_NW[v, w])
        colours_N[v] = c
        _set_priority(priority, position, -1)

        # Each uncoloured neighbour loses an uncoloured neighbour; its saturation rises if the
        # colour is new to it.
        for i in range(starts[v], starts[v + 1]):
            u = neighbours[i]
            if colours_N[u] < 0:
                new = 0 if contains(seen_NW[u], c) else n + 1
                seen_NW[u, c >> 6] |= bit(c)
                _set_priority(priority, num_leaves + u, priority[num_leaves + u] + new - 1)
    return colours_N
