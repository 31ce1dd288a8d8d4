"""DSATUR branch and bound (Brelaz 1979, Comm. ACM 22), without recursion.

So the search can be paused at any branch.

The node with the fewest free colours is coloured next. Of the colours that are not in use yet only
one is tried, since the others are symmetric. Ties between nodes with few free colours go to the
node whose colouring removes the most free colours of other nodes (Sewell 1996; PASS of San Segundo
2012, Computers & OR 39). A clique is coloured first.

Legend: N nodes, W words of 64 nodes, K colours, L levels of the search tree (one for each node).
"""

from __future__ import annotations

from numba import types

from ranks.jit import inlined, kernel
from ranks.workloads.graph_coloring.classical.branching_state import STATE, BranchingState, assign_colour, undo_colour
from ranks.workloads.graph_coloring.graphs.bitsets import ONE, ZERO, contains, lowest_bit, popcount

PASS_MAX_FREE = 3
"""PASS breaks ties up to this many free colours; above it, the degree among uncoloured nodes."""
RUNNING, FOUND, EXHAUSTED = 0, 1, 2


@inlined
def pass_score(state: BranchingState, node: int) -> int:
    """How many (uncoloured neighbour, colour) pairs are free for both the neighbour and the node."""
    total = 0
    for c in range(len(state.free_KW)):
        if contains(state.free_KW[c], node):
            for w in range(len(state.uncoloured_W)):
                total += popcount(state.neighbours_NW[node, w] & state.uncoloured_W[w] & state.free_KW[c, w])
    return total


@inlined
def uncoloured_degree(state: BranchingState, node: int) -> int:
    """The number of uncoloured neighbours of a node."""
    total = 0
    for w in range(len(state.uncoloured_W)):
        total += popcount(state.neighbours_NW[node, w] & state.uncoloured_W[w])
    return total


@inlined
def select_node(state: BranchingState) -> int:
    """The node to branch on, with the fewest free colours; -1 if a node has none.

    Ties are broken as described at the head of this file, then by the lower node.
    """
    num_words = len(state.uncoloured_W)
    for w in range(num_words):
        state.ties_W[w] = state.uncoloured_W[w]

    # Find the minimum of the bit-sliced counts from the highest bit down; `ties_W` keeps the nodes
    # that have it.
    fewest = 0
    for p in range(len(state.free_count_PW) - 1, -1, -1):
        any_zero = ZERO
        for w in range(num_words):
            any_zero |= state.ties_W[w] & ~state.free_count_PW[p, w]
        if any_zero == ZERO:
            fewest += 1 << p
        else:
            for w in range(num_words):
                state.ties_W[w] &= ~state.free_count_PW[p, w]
    if fewest == 0:
        return -1

    # Break ties by score. A node with a single free colour is taken at once.
    best, best_score = -1, -1
    for w in range(num_words):
        ties = state.ties_W[w]
        while ties != ZERO:
            node = 64 * w + lowest_bit(ties)
            if fewest == 1:
                return node
            ties &= ties - ONE
            score = pass_score(state, node) if fewest <= PASS_MAX_FREE else uncoloured_degree(state, node)
            if score > best_score:
                best, best_score = node, score
    return best


@kernel(types.UniTuple(types.int64, 2)(STATE, types.int64, types.int64), allocates=False)
def continue_search(state: BranchingState, root: int, max_branches: int) -> tuple[int, int]:
    """Runs up to `max_branches` branches: (RUNNING, FOUND or EXHAUSTED; branches made).

    A branch gives one node one colour. FOUND: all nodes are coloured. EXHAUSTED: there is no
    k-colouring.
    """
    k, branches = len(state.free_KW), 0
    level = state.level[0]
    while branches < max_branches:
        # Undo the last colour of this level, and find its next free colour; only one unused colour
        # is tried.
        node, colour = state.node_L[level], state.colour_L[level]
        if colour >= 0:
            undo_colour(state, level, node, colour)
        colour += 1
        limit = min(state.used_L[level] + 1, k)
        while colour < limit and not contains(state.free_KW[colour], node):
            colour += 1
        if colour == limit:  # no colour is left: backtrack
            level -= 1
            if level < root:
                return EXHAUSTED, branches
            continue

        # Colour the node, then go down to the next one, unless a node has no free colour.
        state.colour_L[level] = colour
        assign_colour(state, level, node, colour)
        branches += 1
        if level + 1 == len(state.node_L):
            return FOUND, branches
        used = max(state.used_L[level], colour + 1)
        node = select_node(state)
        if node >= 0:
            level += 1
            state.node_L[level], state.colour_L[level], state.used_L[level] = node, -1, used
    state.level[0] = level
    return RUNNING, branches
