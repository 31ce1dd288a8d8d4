"""Greedy colouring, in a fixed order and by saturation: the baselines that stand beside the net.

Legend: N nodes, D directed edges, W words of 64 bits.
"""

from __future__ import annotations

import math

import numpy as np

from ranks.jit import inlined, kernel
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32
from ranks.workloads.graph_coloring.graphs.words import FULL, Number, bit, holds, lowest


def largest_first(graph: Graph) -> Ints:
    """A proper colouring int64[N] (Welsh & Powell 1967): nodes by falling degree, each takes its lowest free colour.

    Ties go to the lower node.
    """
    order_N = np.argsort(-graph.degrees(), kind="stable")
    colours_N = np.full(graph.n, -1)
    colour_in_order(*graph.csr(), order_N, colours_N)
    return colours_N


def dsatur(graph: Graph) -> Ints:
    """A proper colouring int64[N] (Brelaz 1979): always the node whose neighbours show the most colours goes next.

    Ties go to the larger degree among the uncoloured nodes, then to the lower node, which takes its lowest free colour.
    """
    # any greedy colouring has an edge between each two of its colours
    most = min(int(graph.degrees().max(initial=0)), math.isqrt(2 * graph.num_edges)) + 1
    return _by_saturation(*graph.csr(), most)


def num_colours(colours_N: Ints) -> int:
    """How many different colours are used."""
    return len(np.unique(colours_N))


@kernel("void(int32[::1], int32[::1], int64[::1], int64[::1])")
def colour_in_order(starts: Ints32, near: Ints32, order: Ints, colours_N: Ints) -> None:
    """Give the nodes of `order`, one after the other, the lowest colour that no neighbour has. -1 is no colour."""
    seen_by = np.full(len(colours_N) + 1, -1)  # colour -> the last node that saw it; the last place is colour -1
    for v in order:
        for i in range(starts[v], starts[v + 1]):
            seen_by[colours_N[near[i]]] = v
        c = 0
        while seen_by[c] == v:
            c += 1
        colours_N[v] = c


@inlined
def _set_rank(rank: Ints, place: Number, new: Number) -> None:
    rank[place] = new
    while place > 1:
        place //= 2
        larger = max(rank[2 * place], rank[2 * place + 1])
        if rank[place] == larger:
            return
        rank[place] = larger


@kernel("int64[::1](int32[::1], int32[::1], int64)")
def _by_saturation(starts: Ints32, near: Ints32, most_colours: int) -> Ints:
    """DSATUR in O(D log N). A node's rank is saturation * (n + 1) + uncoloured neighbours, -1 once it has a colour.

    The ranks are the leaves of a binary tree in which each inner node holds the larger of its children.
    """
    n = len(starts) - 1
    colours_N = np.full(n, -1)
    seen_NW = np.zeros((n, most_colours // 64 + 1), np.uint64)
    num_leaves = 1
    while num_leaves < n:
        num_leaves *= 2
    rank = np.full(2 * num_leaves, -1)
    for v in range(n):
        rank[num_leaves + v] = starts[v + 1] - starts[v]
    for inner in range(num_leaves - 1, 0, -1):
        rank[inner] = max(rank[2 * inner], rank[2 * inner + 1])
    for _ in range(n):
        place = 1
        while place < num_leaves:
            place = 2 * place if rank[2 * place] == rank[place] else 2 * place + 1
        v = place - num_leaves
        w = 0
        while seen_NW[v, w] == FULL:
            w += 1
        c = 64 * w + lowest(~seen_NW[v, w])
        colours_N[v] = c
        _set_rank(rank, place, -1)
        for i in range(starts[v], starts[v + 1]):
            u = near[i]
            if colours_N[u] < 0:
                new = 0 if holds(seen_NW[u], c) else n + 1
                seen_NW[u, c >> 6] |= bit(c)
                _set_rank(rank, num_leaves + u, rank[num_leaves + u] + new - 1)
    return colours_N
