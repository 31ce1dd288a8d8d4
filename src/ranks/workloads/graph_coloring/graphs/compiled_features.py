"""The node features of `features.py`, compiled with Numba.

The numbers are the same; on large graphs it is hundreds of times faster.

Legend: N nodes, D directed edges, W words of 64 nodes, M neighbours of one node, T edges between
these neighbours.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranks.jit import kernel
from ranks.workloads.graph_coloring.graphs.bitsets import (
    ONE,
    ZERO,
    Bitset,
    adjacency_bitsets,
    contains,
    lowest_bit,
    popcount,
)
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints, Ints32

STEPS_PER_CALL = 10_000_000
"""Neighbours or words that one kernel call reads. Between two calls Ctrl-C is answered."""
MAX_BITSET_NODES = 16_384
"""In larger graphs the adjacency bitsets (32 MiB at this size) no longer fit into the caches."""
WORDS_PER_NEIGHBOUR = 4
"""How often, on average, the greedy clique of a node reads the bitset of one of its neighbours."""


def triangles_and_cliques(graph: Graph, rank_N: Ints, oriented: tuple[Ints32, Ints32]) -> tuple[Ints, Ints]:
    """(triangles, clique size) of each node, int64[N] each; see `features.node_features`.

    `rank_N` breaks ties. `oriented` lists each edge once, in the form of `Graph.csr`. Dense graphs
    are counted with bitsets, others with neighbour lists.
    """
    starts, neighbours = graph.csr()
    num_words = (graph.n + 63) // 64
    list_steps = int((np.diff(starts).astype(np.int64) * np.diff(oriented[0])).sum())
    out_N2 = np.zeros((graph.n, 2), np.int64)
    use_bitsets = graph.n <= MAX_BITSET_NODES and WORDS_PER_NEIGHBOUR * len(neighbours) * num_words < list_steps
    neighbours_NW = adjacency_bitsets(starts, neighbours) if use_bitsets else None
    done = 0
    while done < graph.n:
        if neighbours_NW is not None:
            done = count_with_bitsets(neighbours_NW, rank_N, done, STEPS_PER_CALL, out_N2)
        else:
            done = count_with_lists(starts, neighbours, *oriented, rank_N, done, STEPS_PER_CALL, out_N2)
    return out_N2[:, 0], out_N2[:, 1]


@kernel("int64[::1](int32[::1], int32[::1])")
def core_numbers(starts: Ints32, neighbours: Ints32) -> Ints:
    """int64[N]: core numbers by bucket sort over degrees, in O(D) (Batagelj & Zaversnik 2003)."""
    n = len(starts) - 1
    core_N, max_degree = np.zeros(n, np.int64), 0
    for v in range(n):
        core_N[v] = starts[v + 1] - starts[v]
        max_degree = max(max_degree, core_N[v])

    # Counting sort: `order` lists the nodes by degree, `first[d]` is where the bucket of degree d
    # begins.
    first, order, position_N = np.zeros(max_degree + 2, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for v in range(n):
        first[core_N[v] + 1] += 1
    for k in range(max_degree + 1):
        first[k + 1] += first[k]
    for v in range(n):
        position_N[v] = first[core_N[v]]
        order[position_N[v]] = v
        first[core_N[v]] += 1
    for k in range(max_degree + 1, 0, -1):
        first[k] = first[k - 1]
    first[0] = 0

    # Remove the node of the lowest degree; each neighbour of a higher degree moves down by one
    # bucket.
    for i in range(n):
        v = order[i]
        for j in range(starts[v], starts[v + 1]):
            u = neighbours[j]
            if core_N[u] > core_N[v]:  # swap u with the first node of its bucket, then shrink the bucket from the left
                begin = first[core_N[u]]
                other = order[begin]
                order[position_N[u]], position_N[other] = other, position_N[u]
                order[begin], position_N[u] = u, begin
                first[core_N[u]] += 1
                core_N[u] -= 1
    return core_N


@kernel("int64(uint64[:, ::1], int64[::1], int64, int64, int64[:, ::1])")
def count_with_bitsets(
    neighbours_NW: Bitset, rank_N: Ints, first: int, max_steps: int, out_N2: npt.NDArray[np.int64]
) -> int:
    """Writes (triangles, clique size) of the nodes from `first` on; returns the next node."""
    n, num_words = neighbours_NW.shape
    left_W, left = np.zeros(num_words, np.uint64), np.zeros(n, np.int64)
    v, steps = first, 0
    while v < n and steps < max_steps:
        # The candidates for the clique of v are all its neighbours, as a bitset and as a list.
        num = 0
        for w in range(num_words):
            word = neighbours_NW[v, w]
            left_W[w] = word
            while word != ZERO:
                left[num] = 64 * w + lowest_bit(word)
                num += 1
                word &= word - ONE

        triangles, size = -1, 1
        while num > 0:
            # Choose the candidate that is adjacent to most other candidates; `rank_N` breaks ties.
            chosen, max_adjacent, min_adjacent, total = -1, -1, num, 0
            for j in range(num):
                u, adjacent = left[j], 0
                for w in range(num_words):
                    adjacent += popcount(neighbours_NW[u, w] & left_W[w])
                total += adjacent
                min_adjacent = min(min_adjacent, adjacent)
                if adjacent > max_adjacent or (adjacent == max_adjacent and rank_N[u] > rank_N[chosen]):
                    chosen, max_adjacent = u, adjacent
            steps += num * num_words
            if triangles < 0:  # the first pass counts each edge between neighbours of v twice
                triangles = total // 2
            if min_adjacent == num - 1:  # the remaining candidates form a clique
                size += num
                break

            # Keep only the candidates that are adjacent to the chosen node.
            size += 1
            for w in range(num_words):
                left_W[w] &= neighbours_NW[chosen, w]
            kept = 0
            for j in range(num):
                if contains(neighbours_NW[chosen], left[j]):
                    left[kept] = left[j]
                    kept += 1
            num = kept
        out_N2[v, 0], out_N2[v, 1] = max(triangles, 0), size
        steps += num_words
        v += 1
    return v


@kernel("int64(int32[::1], int32[::1], int32[::1], int32[::1], int64[::1], int64, int64, int64[:, ::1])")
def count_with_lists(
    starts: Ints32,
    neighbours: Ints32,
    oriented_starts: Ints32,
    oriented_neighbours: Ints32,
    rank_N: Ints,
    first: int,
    max_steps: int,
    out_N2: npt.NDArray[np.int64],
) -> int:
    """The same as `count_with_bitsets`, from neighbour lists; for sparse graphs.

    For each node it collects the T edges between its M neighbours, then removes candidates from
    that subgraph.
    """
    n, max_degree = len(starts) - 1, 0
    for v in range(n):
        max_degree = max(max_degree, starts[v + 1] - starts[v])
    max_edges = min(len(oriented_neighbours), max_degree * max_degree // 2)
    position_N = np.full(n, -1)
    a_T, b_T, ends_T = (
        np.zeros(max_edges, np.int64),
        np.zeros(max_edges, np.int64),
        np.zeros(2 * max_edges, np.int64),
    )
    adjacent_M, begin_M = np.zeros(max_degree, np.int64), np.zeros(max_degree + 1, np.int64)
    left, mark_M, fill_M = (
        np.zeros(max_degree, np.int64),
        np.zeros(max_degree, np.int64),
        np.zeros(max_degree, np.int64),
    )
    v, steps, turn = first, 0, 0
    while v < n and steps < max_steps:
        # Number the neighbours of v from 0 and list the edges between them. Each is a triangle with
        # v.
        num = starts[v + 1] - starts[v]
        for j in range(num):
            position_N[neighbours[starts[v] + j]], adjacent_M[j], left[j] = j, 0, j
        edges = 0
        for j in range(num):
            a = neighbours[starts[v] + j]
            for i in range(oriented_starts[a], oriented_starts[a + 1]):
                b = position_N[oriented_neighbours[i]]
                if b >= 0:
                    a_T[edges], b_T[edges] = j, b
                    adjacent_M[j] += 1
                    adjacent_M[b] += 1
                    edges += 1
            steps += 1 + oriented_starts[a + 1] - oriented_starts[a]

        # Compressed sparse rows of that subgraph: the neighbours of j are ends_T[begin_M[j] :
        # begin_M[j + 1]].
        for j in range(num):
            position_N[neighbours[starts[v] + j]] = -1
            begin_M[j + 1] = begin_M[j] + adjacent_M[j]
            fill_M[j] = begin_M[j]
        for i in range(edges):
            a, b = a_T[i], b_T[i]
            ends_T[fill_M[a]], ends_T[fill_M[b]] = b, a
            fill_M[a] += 1
            fill_M[b] += 1

        size = 1
        while num > 0:
            # Choose the candidate that is adjacent to most other candidates; `rank_N` breaks ties.
            chosen, max_adjacent, min_adjacent = -1, -1, num
            for j in range(num):
                u = left[j]
                min_adjacent = min(min_adjacent, adjacent_M[u])
                if adjacent_M[u] > max_adjacent or (
                    adjacent_M[u] == max_adjacent
                    and rank_N[neighbours[starts[v] + u]] > rank_N[neighbours[starts[v] + chosen]]
                ):
                    chosen, max_adjacent = u, adjacent_M[u]
            steps += num
            if min_adjacent == num - 1:  # the remaining candidates form a clique
                size += num
                break

            # Keep the candidates adjacent to the chosen node; the counts of their neighbours lose
            # the removed ones.
            size, turn, kept = size + 1, turn + 1, 0
            for i in range(begin_M[chosen], begin_M[chosen + 1]):
                mark_M[ends_T[i]] = turn
            for j in range(num):
                u = left[j]
                if mark_M[u] == turn:
                    left[kept] = u
                    kept += 1
                else:
                    for i in range(begin_M[u], begin_M[u + 1]):
                        adjacent_M[ends_T[i]] -= 1
            num = kept
        out_N2[v, 0], out_N2[v, 1] = edges, size
        steps += 2 * edges
        v += 1
    return v
