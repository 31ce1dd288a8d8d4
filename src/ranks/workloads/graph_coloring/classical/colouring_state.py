"""The state of a local search: a colouring and its conflict counts, updated move by move.

Legend: N nodes, D directed edges, K colours, or more columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import types

from ranks.jit import inlined, kernel
from ranks.workloads.graph_coloring.classical.rng import mix, randint, uintp
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints32

Counts: TypeAlias = npt.NDArray[Any]
"""int16 or int32"""


class ColouringState(NamedTuple):
    """A colouring with its conflict counts. All arrays are int32; gamma may be int16.

    The conflicting nodes are the first entries of `conflicting_N`; the moves decide their order.
    """

    starts: Ints32
    """[N + 1]: the neighbours of v are neighbours[starts[v] : starts[v + 1]]."""
    neighbours: Ints32
    """[D]"""
    colours_N: Ints32
    gamma_NK: Counts
    """How many neighbours of each node have each colour."""
    conflicting_N: Ints32
    position_N: Ints32
    """The position of each node in `conflicting_N`; -1 if it has no conflict."""


VECTOR = types.Array(types.int32, 1, "C")
STATE, SMALL_STATE = (
    types.NamedTuple((VECTOR, VECTOR, VECTOR, types.Array(count, 2, "C"), VECTOR, VECTOR), ColouringState)
    for count in (types.int32, types.int16)
)
"""The type of a state with gamma as int32, and as int16."""


def initial_state(
    graph: Graph, k: int, seed: int, start_N: npt.ArrayLike | None, columns: int | None = None, count: type = np.int32
) -> tuple[ColouringState, int, int]:
    """(the state of the colouring `start_N`, its conflicting edges, its conflicting nodes).

    Without `start_N` the colours are random: the random numbers 0..N-1 of the seed. `columns`,
    `count`: of gamma, by default k and int32. Raises ValueError if k < 1, or if `start_N` is not
    one colour in 0..k-1 for each node.
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
    gamma_NK = np.zeros((graph.n, columns or k), count)
    conflicting_N, position_N = np.zeros(graph.n, np.int32), np.zeros(graph.n, np.int32)
    state = ColouringState(*graph.csr(), colours_N, gamma_NK, conflicting_N, position_N)
    return state, *(count_conflicts if count is np.int32 else count_conflicts_small)(state)


@kernel("int32[::1](int64, int64, int64)")
def random_colours(n: int, k: int, seed: int) -> Ints32:
    """int32[N]: random colours below k; random number v of the seed is the colour of node v."""
    colours_N = np.zeros(n, np.int32)
    key = mix(np.uint64(seed))
    for v in range(n):
        colours_N[v] = randint(key, v, k)
    return colours_N


@inlined
def add_conflicting(state: ColouringState, num_conflicting: int, node: int) -> int:
    """Appends a node to the list of conflicting nodes; returns the new length."""
    state.conflicting_N[num_conflicting], state.position_N[node] = node, num_conflicting
    return num_conflicting + 1


@inlined
def remove_conflicting(state: ColouringState, num_conflicting: int, node: int) -> int:
    """Removes a node from the list of conflicting nodes; returns the new length.

    The last node of the list takes its position.
    """
    last, position = state.conflicting_N[num_conflicting - 1], state.position_N[node]
    state.conflicting_N[position], state.position_N[last] = last, position
    state.position_N[node] = -1
    return num_conflicting - 1


def _count_conflicts(state: ColouringState) -> tuple[int, int]:
    """Computes all counts from the colours; returns (conflicting edges, conflicting nodes)."""
    conflict_ends = num_conflicting = 0
    for v in range(len(state.colours_N)):
        for i in range(state.starts[v], state.starts[v + 1]):
            state.gamma_NK[v, state.colours_N[state.neighbours[i]]] += 1
        own = state.gamma_NK[v, state.colours_N[v]]
        conflict_ends += own
        state.position_N[v] = -1
        if own:
            num_conflicting = add_conflicting(state, num_conflicting, v)
    return conflict_ends // 2, num_conflicting


count_conflicts, count_conflicts_small = (
    kernel(types.UniTuple(types.int64, 2)(state), allocates=False)(_count_conflicts) for state in (STATE, SMALL_STATE)
)


@inlined
def recolour(state: ColouringState, num_conflicting: int, node: int, new: int, flag: int) -> int:
    """Gives a conflicting node another colour, in O(degree).

    Returns the new number of conflicting nodes. `flag`: what gamma holds, in addition to the count,
    for the own colour of each node; the caller moves it from the old colour of `node` to the new.
    """
    old = state.colours_N[node]
    old_column, new_column = uintp(old), uintp(new)
    state.colours_N[node] = new
    for i in range(uintp(state.starts[node]), uintp(state.starts[node + 1])):
        u = uintp(state.neighbours[i])
        row = state.gamma_NK[u]
        row[old_column] -= 1
        row[new_column] += 1
        colour = state.colours_N[u]
        if colour == old:
            if row[old_column] == flag:
                num_conflicting = remove_conflicting(state, num_conflicting, u)
        elif colour == new and row[new_column] == flag + 1:
            num_conflicting = add_conflicting(state, num_conflicting, u)
    if state.gamma_NK[node, new] == flag:
        num_conflicting = remove_conflicting(state, num_conflicting, node)
    return num_conflicting
