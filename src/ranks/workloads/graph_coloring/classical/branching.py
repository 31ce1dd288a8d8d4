"""DSATUR branching (Brelaz 1979, Comm. ACM 22) over sets of nodes, without recursion, to be paused at any branch.

The node with the fewest free colours goes next, and of the colours that nobody has yet only one is tried, since they
are mirror images. Of equal nodes with few free colours, the one whose colouring takes most choices from others (Sewell
1996; San Segundo 2012, Computers & OR 39, there PASS). A clique is coloured first.

For each colour the set of nodes that may take it is a row of bits. How many colours a node has left stands in bits,
too: bit v of `left_PW[p]` is bit p of that number for node v, so that one step counts for 64 nodes.

Legend: N nodes, W words of 64 nodes, K colours, P bits of a number of colours, L levels of the search (one for each
node).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import types

from ranks.jit import inlined, kernel
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.graphs.words import (
    FULL,
    ONE,
    ZERO,
    Number,
    Words,
    adjacency,
    bit,
    count,
    holds,
    lowest,
)

FEW = 3
"""Free colours up to which equal nodes are compared by the choices that they take from others."""
RUNNING, FOUND, NONE = 0, 1, 2


Numbers: TypeAlias = npt.NDArray[Any]
"""int64[L], where nothing else is said."""


class Tree(NamedTuple):
    """A search under way."""

    near_NW: Words
    free_KW: Words
    """The nodes that a colour may be given to, coloured ones too where no neighbour has it."""
    uncoloured_W: Words
    left_PW: Words
    before_LW: Words
    """The row of `free_KW` that a level changed, as it was."""
    ties_W: Words
    node_L: Numbers
    colour_L: Numbers
    """What the node of a level has now; -1 before its first colour."""
    used_L: Numbers
    """Colours in use before a level."""
    level: Numbers
    """int64[1]"""


ROW, ROWS, NUMBERS = (
    types.Array(types.uint64, 1, "C"),
    types.Array(types.uint64, 2, "C"),
    types.Array(types.int64, 1, "C"),
)
TREE = types.NamedTuple((ROWS, ROWS, ROW, ROWS, ROWS, ROW, NUMBERS, NUMBERS, NUMBERS, NUMBERS), Tree)


def plant(graph: Graph, k: int, clique: Ints) -> Tree:
    """A search for a k-colouring of a connected graph, with a clique of at most k nodes as the first levels."""
    n, num_words = graph.n, (graph.n + 63) // 64
    everyone_W = np.full(num_words, FULL)
    everyone_W[-1] >>= np.uint64(-n % 64)
    tree = Tree(
        near_NW=adjacency(*graph.csr()),
        free_KW=np.tile(everyone_W, (k, 1)),
        uncoloured_W=everyone_W,
        left_PW=np.array([everyone_W * np.uint64(k >> p & 1) for p in range(k.bit_length())]),
        before_LW=np.zeros((n, num_words), np.uint64),
        ties_W=np.zeros(num_words, np.uint64),
        node_L=np.zeros(n, np.int64),
        colour_L=np.zeros(n, np.int64),
        used_L=np.zeros(n, np.int64),
        level=np.zeros(1, np.int64),
    )
    colour_clique(tree, clique)
    return tree


@inlined
def give(tree: Tree, level: Number, node: Number, colour: Number) -> None:
    """Colour a node; its neighbours that could have that colour have one choice less."""
    tree.uncoloured_W[node >> 6] ^= bit(node)
    for w in range(len(tree.uncoloured_W)):
        before = tree.free_KW[colour, w]
        borrow = before & tree.near_NW[node, w]
        tree.before_LW[level, w] = before
        tree.free_KW[colour, w] = before ^ borrow
        for p in range(len(tree.left_PW)):
            digit = tree.left_PW[p, w]
            tree.left_PW[p, w] = digit ^ borrow
            borrow &= ~digit


@inlined
def take_back(tree: Tree, level: Number, node: Number, colour: Number) -> None:
    """The reverse of `give`."""
    tree.uncoloured_W[node >> 6] ^= bit(node)
    for w in range(len(tree.uncoloured_W)):
        before = tree.before_LW[level, w]
        carry = before ^ tree.free_KW[colour, w]
        tree.free_KW[colour, w] = before
        for p in range(len(tree.left_PW)):
            digit = tree.left_PW[p, w]
            tree.left_PW[p, w] = digit ^ carry
            carry &= digit


@inlined
def taken(tree: Tree, node: int) -> int:
    """How many choices of its neighbours a node's own choices are."""
    total = 0
    for c in range(len(tree.free_KW)):
        if holds(tree.free_KW[c], node):
            for w in range(len(tree.uncoloured_W)):
                total += count(tree.near_NW[node, w] & tree.uncoloured_W[w] & tree.free_KW[c, w])
    return total


@inlined
def uncoloured_degree(tree: Tree, node: int) -> int:
    total = 0
    for w in range(len(tree.uncoloured_W)):
        total += count(tree.near_NW[node, w] & tree.uncoloured_W[w])
    return total


@inlined
def tightest(tree: Tree) -> int:
    """The uncoloured node with the fewest choices left, by the rule at the head of the file; -1 if one has none."""
    num_words = len(tree.uncoloured_W)
    for w in range(num_words):
        tree.ties_W[w] = tree.uncoloured_W[w]
    fewest = 0
    for p in range(len(tree.left_PW) - 1, -1, -1):
        some = ZERO
        for w in range(num_words):
            some |= tree.ties_W[w] & ~tree.left_PW[p, w]
        if some == ZERO:
            fewest += 1 << p
        else:
            for w in range(num_words):
                tree.ties_W[w] &= ~tree.left_PW[p, w]
    if fewest == 0:
        return -1
    best, best_score = -1, -1
    for w in range(num_words):
        ties = tree.ties_W[w]
        while ties != ZERO:
            node = 64 * w + lowest(ties)
            if fewest == 1:
                return node
            ties &= ties - ONE
            score = taken(tree, node) if fewest <= FEW else uncoloured_degree(tree, node)
            if score > best_score:
                best, best_score = node, score
    return best


@kernel(types.void(TREE, NUMBERS), allocates=False)
def colour_clique(tree: Tree, clique: Ints) -> None:
    """Give the nodes of a clique one colour each, all but the last, which is the root of the search."""
    root = len(clique) - 1
    for level in range(root):
        tree.node_L[level] = clique[level]
        tree.colour_L[level] = level
        give(tree, level, clique[level], level)
    tree.level[0], tree.node_L[root], tree.colour_L[root], tree.used_L[root] = root, clique[root], -1, root


@kernel(types.UniTuple(types.int64, 2)(TREE, types.int64, types.int64), allocates=False)
def advance(tree: Tree, root: int, max_branches: int) -> tuple[int, int]:
    """Make so many branches more, or fewer up to the end. (RUNNING, FOUND or NONE; branches made)."""
    k, branches = len(tree.free_KW), 0
    level = tree.level[0]
    while branches < max_branches:
        node, colour = tree.node_L[level], tree.colour_L[level]
        if colour >= 0:
            take_back(tree, level, node, colour)
        colour += 1
        most = min(tree.used_L[level] + 1, k)
        while colour < most and not holds(tree.free_KW[colour], node):
            colour += 1
        if colour == most:
            level -= 1
            if level < root:
                return NONE, branches
            continue
        tree.colour_L[level] = colour
        give(tree, level, node, colour)
        branches += 1
        if level + 1 == len(tree.node_L):
            return FOUND, branches
        used = max(tree.used_L[level], colour + 1)
        node = tightest(tree)
        if node >= 0:
            level += 1
            tree.node_L[level], tree.colour_L[level], tree.used_L[level] = node, -1, used
    tree.level[0] = level
    return RUNNING, branches
