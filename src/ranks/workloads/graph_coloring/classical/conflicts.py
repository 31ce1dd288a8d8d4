"""A colouring that is changed one node at a time, with the counts that a local search asks for kept up to date.

Legend: N nodes, D directed edges, K colours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from ranks.jit import inlined, kernel
from ranks.workloads.graph_coloring.classical.draws import draw, mix
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints32


class Colouring(NamedTuple):
    """All arrays are int32. The conflicting nodes are the first of `bad_N`, in an order that the moves decide."""

    starts: Ints32
    """[N + 1]: the neighbours of v are near[starts[v] : starts[v + 1]]."""
    near: Ints32
    """[D]"""
    colours_N: Ints32
    gamma_NK: Ints32
    """Neighbours of each node with each colour."""
    bad_N: Ints32
    place_N: Ints32
    """Where a node stands in `bad_N`; -1 if it has no conflict."""


VECTOR, MATRIX = types.Array(types.int32, 1, "C"), types.Array(types.int32, 2, "C")
COLOURING = types.NamedTuple((VECTOR, VECTOR, VECTOR, MATRIX, VECTOR, VECTOR), Colouring)


def colouring(graph: Graph, k: int, seed: int, start_N: npt.ArrayLike | None) -> tuple[Colouring, int, int]:
    """(a colouring that starts from `start_N` or from random colours, its conflicts, its conflicting nodes).

    The random colours are the numbers 0..N-1 of the seed. ValueError where k < 1, or where `start_N` is not one colour
    in 0..k-1 for each node.
    """
    if k < 1:
        raise ValueError(f"no colouring has {k} colours")
    if start_N is None:
        colours_N = random_colours(graph.n, k, seed)
    else:
        given_N = np.asarray(start_N)
        if given_N.shape != (graph.n,) or (graph.n and not 0 <= given_N.min() <= given_N.max() < k):
            raise ValueError(f"a colouring to start from has one colour in 0..{k - 1} for each of {graph.n} nodes")
        colours_N = given_N.astype(np.int32)
    gamma_NK = np.zeros((graph.n, k), np.int32)
    state = Colouring(*graph.csr(), colours_N, gamma_NK, np.zeros(graph.n, np.int32), np.zeros(graph.n, np.int32))
    return state, *count_all(state)


@kernel("int32[::1](int64, int64, int64)")
def random_colours(n: int, k: int, seed: int) -> Ints32:
    """int32[N]: number v of the seed is the colour of node v."""
    colours_N = np.zeros(n, np.int32)
    key = mix(np.uint64(seed))
    for v in range(n):
        colours_N[v] = draw(key, v, k)
    return colours_N


@inlined
def join(state: Colouring, num_bad: int, node: int) -> int:
    """Put a node last in the list of conflicting nodes; its new length."""
    state.bad_N[num_bad], state.place_N[node] = node, num_bad
    return num_bad + 1


@inlined
def leave(state: Colouring, num_bad: int, node: int) -> int:
    """Take a node out of the list of conflicting nodes: the last one takes its place; its new length."""
    last, place = state.bad_N[num_bad - 1], state.place_N[node]
    state.bad_N[place], state.place_N[last] = last, place
    state.place_N[node] = -1
    return num_bad - 1


@kernel(types.UniTuple(types.int64, 2)(COLOURING), allocates=False)
def count_all(state: Colouring) -> tuple[int, int]:
    """Count everything from the colours alone; (conflicting edges, conflicting nodes)."""
    ends = num_bad = 0
    for v in range(len(state.colours_N)):
        for i in range(state.starts[v], state.starts[v + 1]):
            state.gamma_NK[v, state.colours_N[state.near[i]]] += 1
        own = state.gamma_NK[v, state.colours_N[v]]
        ends += own
        state.place_N[v] = -1
        if own:
            num_bad = join(state, num_bad, v)
    return ends // 2, num_bad


@inlined
def recolour(state: Colouring, num_bad: int, node: int, new: int) -> int:
    """Give a conflicting node another colour, at the cost of a look at its neighbours; the new length of the list."""
    old = state.colours_N[node]
    state.colours_N[node] = new
    for i in range(state.starts[node], state.starts[node + 1]):
        u = state.near[i]
        state.gamma_NK[u, old] -= 1
        state.gamma_NK[u, new] += 1
        colour = state.colours_N[u]
        if colour == old and state.gamma_NK[u, old] == 0:
            num_bad = leave(state, num_bad, u)
        elif colour == new and state.gamma_NK[u, new] == 1:
            num_bad = join(state, num_bad, u)
    if state.gamma_NK[node, new] == 0:
        num_bad = leave(state, num_bad, node)
    return num_bad
