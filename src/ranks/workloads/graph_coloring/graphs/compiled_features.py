"""The counts of `features.py`, compiled: the same numbers, hundreds of times as fast on large and dense graphs.

Legend: N nodes, D directed edges, W words of 64 nodes, M neighbours of one node, T edges among them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ranks.jit import kernel
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32
from ranks.workloads.graph_coloring.graphs.words import ONE, ZERO, Words, adjacency, count, holds, lowest

LOOKS_AT_ONCE = 10_000_000
"""Between two looks at the clock, in neighbours or words: some hundredths of a second."""
MOST_WORD_NODES = 16_384
"""Above it the bits of all pairs of nodes would fill the caches many times over (32 MiB)."""
SHARED_WORK = 4
"""Looks at words of 64 nodes for each node's neighbour, on average over the steps of its clique."""


def triangles_and_cliques(
    graph: Graph, rank_N: Ints, ups: tuple[Ints32, Ints32], stop: Callable[[], bool]
) -> tuple[Ints, Ints] | None:
    """(triangles, clique) of each node, int64[N] each, see `features.node_features`.

    `rank_N`: who wins ties. `ups`: each edge listed once, in the form of `Graph.csr`. Dense graphs are counted by words
    of bits, others by lists. None where `stop` said so before the end.
    """
    starts, near = graph.csr()
    num_words = (graph.n + 63) // 64
    by_lists = int((np.diff(starts).astype(np.int64) * np.diff(ups[0])).sum())
    found_N2 = np.zeros((graph.n, 2), np.int64)
    by_words = graph.n <= MOST_WORD_NODES and SHARED_WORK * len(near) * num_words < by_lists
    near_NW = adjacency(starts, near) if by_words else None
    done = 0
    while done < graph.n:
        if near_NW is not None:
            done = count_by_words(near_NW, rank_N, done, LOOKS_AT_ONCE, found_N2)
        else:
            done = count_by_lists(starts, near, *ups, rank_N, done, LOOKS_AT_ONCE, found_N2)
        if stop():
            return None
    return found_N2[:, 0], found_N2[:, 1]


@kernel("int64[::1](int32[::1], int32[::1])")
def core_numbers(starts: Ints32, near: Ints32) -> Ints:
    """int64[N]: nodes are taken away by rising degree, kept in order by buckets (Batagelj & Zaversnik 2003)."""
    n = len(starts) - 1
    core_N, most = np.zeros(n, np.int64), 0
    for v in range(n):
        core_N[v] = starts[v + 1] - starts[v]
        most = max(most, core_N[v])
    first, order, place_N = np.zeros(most + 2, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for v in range(n):
        first[core_N[v] + 1] += 1
    for k in range(most + 1):
        first[k + 1] += first[k]
    for v in range(n):
        place_N[v] = first[core_N[v]]
        order[place_N[v]] = v
        first[core_N[v]] += 1
    for k in range(most + 1, 0, -1):
        first[k] = first[k - 1]
    first[0] = 0
    for i in range(n):
        v = order[i]
        for j in range(starts[v], starts[v + 1]):
            u = near[j]
            if core_N[u] > core_N[v]:  # u changes places with the first of its bucket, which begins one later then
                begin = first[core_N[u]]
                other = order[begin]
                order[place_N[u]], place_N[other] = other, place_N[u]
                order[begin], place_N[u] = u, begin
                first[core_N[u]] += 1
                core_N[u] -= 1
    return core_N


@kernel("int64(uint64[:, ::1], int64[::1], int64, int64, int64[:, ::1])")
def count_by_words(near_NW: Words, rank_N: Ints, first: int, max_looks: int, found_N2: npt.NDArray[np.int64]) -> int:
    """Counts of the nodes from `first` on, until the looks are spent; the first node that is left."""
    n, num_words = near_NW.shape
    left_W, left = np.zeros(num_words, np.uint64), np.zeros(n, np.int64)
    v, looks = first, 0
    while v < n and looks < max_looks:
        num = 0
        for w in range(num_words):
            word = near_NW[v, w]
            left_W[w] = word
            while word != ZERO:
                left[num] = 64 * w + lowest(word)
                num += 1
                word &= word - ONE
        triangles, size = -1, 1
        while num > 0:
            chosen, most, least, total = -1, -1, num, 0
            for j in range(num):
                u, joined = left[j], 0
                for w in range(num_words):
                    joined += count(near_NW[u, w] & left_W[w])
                total += joined
                least = min(least, joined)
                if joined > most or (joined == most and rank_N[u] > rank_N[chosen]):
                    chosen, most = u, joined
            looks += num * num_words
            if triangles < 0:
                triangles = total // 2
            if least == num - 1:  # all that are left know each other
                size += num
                break
            size += 1
            for w in range(num_words):
                left_W[w] &= near_NW[chosen, w]
            kept = 0
            for j in range(num):
                if holds(near_NW[chosen], left[j]):
                    left[kept] = left[j]
                    kept += 1
            num = kept
        found_N2[v, 0], found_N2[v, 1] = max(triangles, 0), size
        looks += num_words
        v += 1
    return v


@kernel("int64(int32[::1], int32[::1], int32[::1], int32[::1], int64[::1], int64, int64, int64[:, ::1])")
def count_by_lists(
    starts: Ints32,
    near: Ints32,
    up_starts: Ints32,
    up_near: Ints32,
    rank_N: Ints,
    first: int,
    max_looks: int,
    found_N2: npt.NDArray[np.int64],
) -> int:
    """The same from lists: the edges among a node's M neighbours are gathered, then the neighbours thinned out."""
    n, most_near = len(starts) - 1, 0
    for v in range(n):
        most_near = max(most_near, starts[v + 1] - starts[v])
    most_edges = min(len(up_near), most_near * most_near // 2)
    place_N = np.full(n, -1)
    a_T, b_T, ends_T = (
        np.zeros(most_edges, np.int64),
        np.zeros(most_edges, np.int64),
        np.zeros(2 * most_edges, np.int64),
    )
    joined_M, begin_M = np.zeros(most_near, np.int64), np.zeros(most_near + 1, np.int64)
    left, met_M, fill_M = np.zeros(most_near, np.int64), np.zeros(most_near, np.int64), np.zeros(most_near, np.int64)
    v, looks, turn = first, 0, 0
    while v < n and looks < max_looks:
        num = starts[v + 1] - starts[v]
        for j in range(num):
            place_N[near[starts[v] + j]], joined_M[j], left[j] = j, 0, j
        edges = 0
        for j in range(num):
            a = near[starts[v] + j]
            for i in range(up_starts[a], up_starts[a + 1]):
                b = place_N[up_near[i]]
                if b >= 0:
                    a_T[edges], b_T[edges] = j, b
                    joined_M[j] += 1
                    joined_M[b] += 1
                    edges += 1
            looks += 1 + up_starts[a + 1] - up_starts[a]
        for j in range(num):
            place_N[near[starts[v] + j]] = -1
            begin_M[j + 1] = begin_M[j] + joined_M[j]
            fill_M[j] = begin_M[j]
        for i in range(edges):
            a, b = a_T[i], b_T[i]
            ends_T[fill_M[a]], ends_T[fill_M[b]] = b, a
            fill_M[a] += 1
            fill_M[b] += 1
        size = 1
        while num > 0:
            chosen, most, least = -1, -1, num
            for j in range(num):
                u = left[j]
                least = min(least, joined_M[u])
                if joined_M[u] > most or (
                    joined_M[u] == most and rank_N[near[starts[v] + u]] > rank_N[near[starts[v] + chosen]]
                ):
                    chosen, most = u, joined_M[u]
            looks += num
            if least == num - 1:
                size += num
                break
            size, turn, kept = size + 1, turn + 1, 0
            for i in range(begin_M[chosen], begin_M[chosen + 1]):
                met_M[ends_T[i]] = turn
            for j in range(num):
                u = left[j]
                if met_M[u] == turn:
                    left[kept] = u
                    kept += 1
                else:
                    for i in range(begin_M[u], begin_M[u + 1]):
                        joined_M[ends_T[i]] -= 1
            num = kept
        found_N2[v, 0], found_N2[v, 1] = edges, size
        looks += 2 * edges
        v += 1
    return v
