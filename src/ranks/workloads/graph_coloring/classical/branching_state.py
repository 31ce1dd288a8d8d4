"""The state of a DSATUR branch and bound: a partial colouring, and free colours as bitsets.

For each colour a bitset holds the nodes that may take it. How many free colours a node has is
stored bit-sliced: bit v of `free_count_PW[p]` is bit p of that number for node v. So one pass over
the words updates 64 nodes at a time.

Legend: N nodes, W words of 64 nodes, K colours, P bits of a number of colours, L levels of the
search tree (one for each node).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import types

from ranks.jit import inlined, kernel
from ranks.workloads.graph_coloring.graphs.bitsets import ALL_ONES, Bitset, Number, adjacency_bitsets, bit
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

Numbers: TypeAlias = npt.NDArray[Any]
"""int64[L], unless stated otherwise."""


class BranchingState(NamedTuple):
    """A branch and bound that can be paused: the path from the root to the current level."""

    neighbours_NW: Bitset
    free_KW: Bitset
    """The nodes that may take each colour: no neighbour has it. Coloured nodes are included."""
    uncoloured_W: Bitset
    free_count_PW: Bitset
    """The number of free colours of each node, bit-sliced."""
    saved_LW: Bitset
    """The row of `free_KW` that a level changed, as it was before."""
    ties_W: Bitset
    node_L: Numbers
    colour_L: Numbers
    """The colour of the node of each level; -1 before its first one."""
    used_L: Numbers
    """The number of colours in use before each level."""
    level: Numbers
    """int64[1]"""


ROW, ROWS, NUMBERS = (
    types.Array(types.uint64, 1, "C"),
    types.Array(types.uint64, 2, "C"),
    types.Array(types.int64, 1, "C"),
)
STATE = types.NamedTuple((ROWS, ROWS, ROW, ROWS, ROWS, ROW, NUMBERS, NUMBERS, NUMBERS, NUMBERS), BranchingState)


def start_search(graph: Graph, k: int, clique: Ints) -> BranchingState:
    """The initial state of a search for a k-colouring of a connected graph.

    The first levels colour a clique of at most k nodes.
    """
    n, num_words = graph.n, (graph.n + 63) // 64
    all_nodes_W = np.full(num_words, ALL_ONES)
    all_nodes_W[-1] >>= np.uint64(-n % 64)
    state = BranchingState(
        neighbours_NW=adjacency_bitsets(*graph.csr()),
        free_KW=np.tile(all_nodes_W, (k, 1)),
        uncoloured_W=all_nodes_W,
        free_count_PW=np.array([all_nodes_W * np.uint64(k >> p & 1) for p in range(k.bit_length())]),
        saved_LW=np.zeros((n, num_words), np.uint64),
        ties_W=np.zeros(num_words, np.uint64),
        node_L=np.zeros(n, np.int64),
        colour_L=np.zeros(n, np.int64),
        used_L=np.zeros(n, np.int64),
        level=np.zeros(1, np.int64),
    )
    colour_clique(state, clique)
    return state


@inlined
def assign_colour(state: BranchingState, level: Number, node: Number, colour: Number) -> None:
    """Colours a node. Its neighbours that could take that colour have one free colour less."""
    state.uncoloured_W[node >> 6] ^= bit(node)
    for w in range(len(state.uncoloured_W)):
        before = state.free_KW[colour, w]
        borrow = before & state.neighbours_NW[node, w]
        state.saved_LW[level, w] = before
        state.free_KW[colour, w] = before ^ borrow
        # subtract 1 from the counts of the nodes in `borrow`, bit by bit
        for p in range(len(state.free_count_PW)):
            digit = state.free_count_PW[p, w]
            state.free_count_PW[p, w] = digit ^ borrow
            borrow &= ~digit


@inlined
def undo_colour(state: BranchingState, level: Number, node: Number, colour: Number) -> None:
    """Reverts `assign_colour`."""
    state.uncoloured_W[node >> 6] ^= bit(node)
    for w in range(len(state.uncoloured_W)):
        before = state.saved_LW[level, w]
        carry = before ^ state.free_KW[colour, w]
        state.free_KW[colour, w] = before
        # add 1 to the counts of the nodes in `carry`, bit by bit
        for p in range(len(state.free_count_PW)):
            digit = state.free_count_PW[p, w]
            state.free_count_PW[p, w] = digit ^ carry
            carry &= digit


@kernel(types.void(STATE, NUMBERS), allocates=False)
def colour_clique(state: BranchingState, clique: Ints) -> None:
    """Gives each node of a clique a different colour, except the last, the root of the search."""
    root = len(clique) - 1
    for level in range(root):
        state.node_L[level] = clique[level]
        state.colour_L[level] = level
        assign_colour(state, level, clique[level], level)
    state.level[0], state.node_L[root], state.colour_L[root], state.used_L[root] = root, clique[root], -1, root
