"""One step of many trees: `expand` and `backup` the evaluations that came back, then `select` new leaves.

A tree makes one simulation for each leaf; the head of search.py shows a simulation in pseudo-code. A simulation that
ends in a finished game needs no evaluation: it is backed up at once, and the tree selects again in the same step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from ranks.jit import inlined, kernel
from ranks.search.evaluation import Float32Array, Int32Array, Int64Array, Moves, Words
from ranks.search.game import LEGAL_MOVES_TYPE, PLAY_TYPE, WON
from ranks.search.gumbel import select_edge_gumbel_interior, select_edge_gumbel_root
from ranks.search.puct import select_edge_puct
from ranks.search.roots import prepare_root
from ranks.search.trees import (
    NONE,
    PARAMS,
    SIZES,
    TREES,
    UNEVALUATED,
    SearchParams,
    Sizes,
    Trees,
    checked_count,
    int64,
    is_evaluated,
    is_finished,
    matrix,
    node_outcome,
    vector,
)

PRIOR_SUM_TOLERANCE = 0.02
"""The priors of networks in bfloat16 may miss a sum of one by this much."""
VALUE_TOLERANCE = 1e-3
MAX_FINISHED = 64
"""The most simulations of one tree that may end in finished games within one step, so that no step takes long."""


@inlined
def select(play: Any, legal_moves: Any, trees: Trees, sizes: Sizes, params: SearchParams, slot: int) -> int:
    """Start simulations until one reaches a leaf that needs an evaluation: that node, or NONE in this step.

    Simulations that end in a finished game are complete here: they are backed up with its outcome.
    """
    root = slot * sizes.nodes_per_game
    if not is_evaluated(trees, root):
        wanted = trees.slots_G[slot].simulations_left > 0 or trees.slots_G[slot].evaluate_root != 0
        return root if wanted and trees.pending_GL[slot, 0] == NONE else NONE
    finished = 0
    while trees.slots_G[slot].simulations_left > 0 and finished < MAX_FINISHED:
        node = traverse(play, legal_moves, trees, sizes, params, slot)
        if trees.slots_G[slot].out_of_nodes:
            trees.slots_G[slot].simulations_left = 0
        if node == NONE:
            return NONE
        trees.slots_G[slot].simulations_left -= 1
        trees.slots_G[slot].simulations_done += 1
        if not is_finished(trees, node):
            return node
        backup(trees, slot, node, float(trees.nodes_N[node].value), False)
        finished += 1
    return NONE


@inlined
def traverse(play: Any, legal_moves: Any, trees: Trees, sizes: Sizes, params: SearchParams, slot: int) -> int:
    """Walk from the root down to a node that is new or finished.

    NONE where the path meets a leaf that is out for evaluation, or where the slot has no room for another node.
    """
    node = slot * sizes.nodes_per_game
    visits = trees.slots_G[slot].root_visits
    num_keys = trees.slots_G[slot].num_keys
    keys = slot * sizes.keys_per_game
    while True:
        if is_finished(trees, node):
            return node
        if not is_evaluated(trees, node):
            return NONE
        if (
            num_keys == sizes.keys_per_game
            or trees.slots_G[slot].num_nodes == sizes.nodes_per_game
            or trees.slots_G[slot].num_edges + sizes.max_moves > sizes.edges_per_game
        ):
            trees.slots_G[slot].out_of_nodes = True
            return NONE
        # Choose an edge: PUCT everywhere, or Gumbel with its two rules for the root and for interior nodes.
        if not params.gumbel:
            edge = select_edge_puct(trees, params, node, visits)
        elif trees.nodes_N[node].parent != NONE:
            edge = select_edge_gumbel_interior(trees, params, node, visits)
        else:
            considered = int64(trees.considered_visits_GS[slot, trees.slots_G[slot].simulations_done])
            edge = select_edge_gumbel_root(trees, params, slot, node, considered)
        # Follow the edge. The key of the position that is left joins the path, for the repetition rule.
        trees.keys_K[keys + num_keys] = trees.states_NW[node, sizes.key_word]
        num_keys += 1
        visits = int64(trees.edges_E[edge].visits)
        if trees.edges_E[edge].child == NONE:
            return add_child(play, legal_moves, trees, sizes, slot, node, edge, num_keys)
        node = int64(trees.edges_E[edge].child)


@inlined
def add_child(
    play: Any, legal_moves: Any, trees: Trees, sizes: Sizes, slot: int, node: int, edge: int, num_keys: int
) -> int:
    """Create the node behind an edge. It is finished, or has its legal moves and no evaluation yet."""
    child = slot * sizes.nodes_per_game + trees.slots_G[slot].num_nodes
    first = slot * sizes.edges_per_game + trees.slots_G[slot].num_edges
    keys = slot * sizes.keys_per_game
    play(trees.states_NW, node, trees.states_NW, child, trees.move_E[edge])
    count = legal_moves(trees.states_NW, child, trees.keys_K, keys, keys + num_keys, trees.move_E, first)
    num_moves = checked_count(count, sizes.max_moves)
    trees.slots_G[slot].num_nodes += 1
    trees.slots_G[slot].num_edges += max(num_moves, 0)
    trees.nodes_N[child].first_edge = first
    trees.nodes_N[child].num_edges = num_moves
    trees.nodes_N[child].num_initialized = UNEVALUATED
    trees.nodes_N[child].parent = node
    trees.nodes_N[child].parent_edge = edge
    trees.edges_E[edge].child = child
    if num_moves < 0:
        trees.nodes_N[child].value = np.float32(node_outcome(num_moves) if num_moves >= WON else 0.0)
    return child


@inlined
def expand(trees: Trees, node: int, priors_BM: Float32Array, row: int, value: float) -> bool:
    """Store priors and value of an evaluated node. False if they are not probabilities and a value from -1 to 1."""
    first, num_edges = trees.nodes_N[node].first_edge, trees.nodes_N[node].num_edges
    total = 0.0
    for i in range(num_edges):
        prior = float(priors_BM[row, i])
        if not prior >= 0.0:
            return False
        total += prior
    if not (abs(total - 1.0) <= PRIOR_SUM_TOLERANCE and abs(value) <= 1.0 + VALUE_TOLERANCE):
        return False
    scale = 1.0 / total
    for i in range(num_edges):
        trees.prior_E[first + i] = np.float32(float(priors_BM[row, i]) * scale)
    trees.nodes_N[node].value = np.float32(value)
    trees.nodes_N[node].num_initialized = 0
    return True


@inlined
def backup(trees: Trees, slot: int, node: int, value: float, has_virtual_loss: bool) -> None:
    """Add a value for the side to move at `node` to all edges above it. It replaces a virtual loss, if there is one."""
    visits, loss = (0, 1.0) if has_virtual_loss else (1, 0.0)
    trees.slots_G[slot].root_visits += visits
    while trees.nodes_N[node].parent != NONE:
        value = -value
        edge = trees.nodes_N[node].parent_edge
        trees.edges_E[edge].visits += visits
        trees.edges_E[edge].value_sum += value + loss
        node = int64(trees.nodes_N[node].parent)


@inlined
def add_virtual_loss(trees: Trees, slot: int, node: int) -> None:
    """Count a leaf that is out for evaluation as a lost visit of every edge above it."""
    trees.slots_G[slot].root_visits += 1
    while trees.nodes_N[node].parent != NONE:
        edge = trees.nodes_N[node].parent_edge
        trees.edges_E[edge].visits += 1
        trees.edges_E[edge].value_sum -= 1.0
        node = int64(trees.nodes_N[node].parent)


SLOTS, STATES, MOVES, NUM_MOVES, PRIORS, VALUES = (
    vector(types.int64),
    matrix(types.uint64),
    matrix(types.uint16),
    vector(types.int32),
    matrix(types.float32),
    vector(types.float32),
)


@kernel(
    types.int64(
        PLAY_TYPE, LEGAL_MOVES_TYPE, TREES, SIZES, PARAMS, SLOTS, types.int64, STATES, MOVES, NUM_MOVES, PRIORS, VALUES
    ),
    allocates=False,
)
def step(
    play: Any,
    legal_moves: Any,
    trees: Trees,
    sizes: Sizes,
    params: SearchParams,
    slots_P: Int64Array,
    first_slot: int,
    states_BW: Words,
    moves_BM: Moves,
    num_moves_B: Int32Array,
    priors_BM: Float32Array,
    value_B: Float32Array,
) -> int:
    """One step of these slots. The leaves of slot `first_slot` are the first rows of the batch.

    Returns the first row whose evaluation is not valid, or NONE. Nothing is written for that row and the slots after.
    """
    use_virtual_loss = sizes.leaves_per_game > 1
    for i in range(slots_P.shape[0]):
        slot = slots_P[i]
        root = slot * sizes.nodes_per_game
        start = (slot - first_slot) * sizes.leaves_per_game
        # Expand and back up the leaves of this slot that came back from the evaluator.
        for leaf in range(sizes.leaves_per_game):
            node = int64(trees.pending_GL[slot, leaf])
            if node == NONE:
                continue
            row = start + leaf
            if not expand(trees, node, priors_BM, row, float(value_B[row])):
                return row
            trees.pending_GL[slot, leaf] = NONE
            if node == root:
                trees.slots_G[slot].root_visits = 1
                trees.slots_G[slot].evaluate_root = False
                prepare_root(trees, params, slot, root)
            else:
                backup(trees, slot, node, float(trees.nodes_N[node].value), use_virtual_loss)
        # Select the next leaves. Each counts as lost until its evaluation is backed up, so that the leaves of one game
        # in one batch differ.
        for leaf in range(sizes.leaves_per_game):
            row = start + leaf
            node = select(play, legal_moves, trees, sizes, params, slot)
            trees.pending_GL[slot, leaf] = node
            num_moves_B[row] = 0
            if node == NONE:
                continue
            if use_virtual_loss and node != root:
                add_virtual_loss(trees, slot, node)
            # Write the leaf into its row of the batch.
            num_moves_B[row] = trees.nodes_N[node].num_edges
            for word in range(states_BW.shape[1]):
                states_BW[row, word] = trees.states_NW[node, word]
            for edge in range(trees.nodes_N[node].num_edges):
                moves_BM[row, edge] = trees.move_E[trees.nodes_N[node].first_edge + edge]
    return NONE
