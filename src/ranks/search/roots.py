"""Roots: where a search starts, the noise at the root, and how the tree follows the moves that are played."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types

from ranks.jit import inlined, kernel
from ranks.search.evaluation import BoolArray, Int64Array, Moves, Words
from ranks.search.game import LEGAL_MOVES_TYPE, PLAY_TYPE, WON
from ranks.search.puct import initialize_edge
from ranks.search.rng import DIRICHLET, GUMBEL, gumbel, log_gamma_sample, mix, stream_key
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
    node_outcome,
    vector,
)


@inlined
def prepare_root(trees: Trees, params: SearchParams, slot: int, root: int) -> None:
    """Add noise to an evaluated root, if this search wants it; a `puct` root gets it once. For a `gumbel` root also
    record the visits that this search starts from."""
    first, num_edges = int64(trees.nodes_N[root].first_edge), int64(trees.nodes_N[root].num_edges)
    # Sequential halving scores all edges of the root, so all need statistics; it counts the visits of this search only.
    if params.gumbel:
        for i in range(trees.nodes_N[root].num_initialized, num_edges):
            initialize_edge(trees, first + i)
        trees.nodes_N[root].num_initialized = num_edges
        for i in range(num_edges):
            trees.root_edges_GM[slot, i].visits_before = trees.edges_E[first + i].visits
    wants_noise = trees.slots_G[slot].wants_noise != 0
    if params.gumbel:
        trees.slots_G[slot].noise_added = True
        scale = params.gumbel_scale if wants_noise else 0.0
        key = stream_key(params.seed, trees.slots_G[slot].game_id, trees.slots_G[slot].ply, GUMBEL)
        for i in range(num_edges):
            noise = scale * gumbel(key, int64(trees.move_E[first + i]))
            trees.root_edges_GM[slot, i].noise = math.log(trees.prior_E[first + i]) + noise
    elif wants_noise and not trees.slots_G[slot].noise_added and params.dirichlet_fraction > 0.0:
        trees.slots_G[slot].noise_added = True
        add_dirichlet_noise(trees, params, slot, root)


@inlined
def add_dirichlet_noise(trees: Trees, params: SearchParams, slot: int, root: int) -> None:
    """Mix the priors of a root with Dirichlet(alpha) noise. A move's share depends on (seed, game, ply, moves) only."""
    first, num_edges = int64(trees.nodes_N[root].first_edge), int64(trees.nodes_N[root].num_edges)
    key = stream_key(params.seed, trees.slots_G[slot].game_id, trees.slots_G[slot].ply, DIRICHLET)
    # A Dirichlet sample is a set of Gamma(alpha) samples divided by their sum; it is computed from logarithms.
    highest, total = -np.inf, 0.0
    for i in range(num_edges):
        log_sample = log_gamma_sample(params.dirichlet_alpha, mix(key ^ np.uint64(trees.move_E[first + i])))
        trees.root_edges_GM[slot, i].noise = log_sample
        highest = max(highest, log_sample)
    for i in range(num_edges):
        total += math.exp(trees.root_edges_GM[slot, i].noise - highest)
    for i in range(num_edges):
        share = params.dirichlet_fraction * (math.exp(trees.root_edges_GM[slot, i].noise - highest) / total)
        trees.prior_E[first + i] = np.float32(
            (1.0 - params.dirichlet_fraction) * float(trees.prior_E[first + i]) + share
        )
    # The priors have changed: the edges without visits have to be sorted again.
    num_visited = 0
    while num_visited < trees.nodes_N[root].num_initialized and trees.edges_E[first + num_visited].visits > 0:
        num_visited += 1
    trees.nodes_N[root].num_initialized = num_visited


@inlined
def reset_root(legal_moves: Any, trees: Trees, sizes: Sizes, slot: int) -> None:
    """Make the state in the slot's first row the root of an empty tree."""
    root = slot * sizes.nodes_per_game
    first = slot * sizes.edges_per_game
    keys = slot * sizes.keys_per_game
    count = legal_moves(
        trees.states_NW, root, trees.keys_K, keys, keys + trees.slots_G[slot].num_keys, trees.move_E, first
    )
    num_moves = checked_count(count, sizes.max_moves)
    trees.slots_G[slot].num_nodes = 1
    trees.slots_G[slot].num_edges = max(num_moves, 0)
    trees.slots_G[slot].root_visits = 0
    trees.slots_G[slot].evaluate_root = False
    trees.nodes_N[root].first_edge = first
    trees.nodes_N[root].num_edges = num_moves
    trees.nodes_N[root].num_initialized = UNEVALUATED
    trees.nodes_N[root].parent = NONE
    trees.nodes_N[root].parent_edge = NONE
    if num_moves < 0:
        trees.nodes_N[root].value = np.float32(node_outcome(num_moves) if num_moves >= WON else 0.0)


@inlined
def append_key(trees: Trees, sizes: Sizes, slot: int, key: np.uint64) -> None:
    """Append the key of the position before a move; only the newest `history` keys are kept."""
    keys, count = slot * sizes.keys_per_game, trees.slots_G[slot].num_keys
    if sizes.history == 0:
        return
    if count == sizes.history:
        for i in range(keys, keys + count - 1):
            trees.keys_K[i] = trees.keys_K[i + 1]
        count -= 1
    trees.keys_K[keys + count] = key
    trees.slots_G[slot].num_keys = count + 1


@inlined
def find_edge(trees: Trees, root: int, move: np.uint16) -> int:
    """The edge of a legal move, or NONE."""
    first = int64(trees.nodes_N[root].first_edge)
    for edge in range(first, first + trees.nodes_N[root].num_edges):
        if trees.move_E[edge] == move:
            return edge
    return int64(NONE)


@kernel(
    types.int64(
        PLAY_TYPE, LEGAL_MOVES_TYPE, TREES, SIZES, types.int64, types.uint64, vector(types.uint64), vector(types.uint16)
    ),
    allocates=False,
)
def set_root(
    play: Any,
    legal_moves: Any,
    trees: Trees,
    sizes: Sizes,
    slot: int,
    game_id: np.uint64,
    start_W: Words,
    moves_T: Moves,
) -> int:
    """Start a tree at the position after `moves_T`. Returns the index of the first illegal move, or NONE."""
    root = slot * sizes.nodes_per_game
    for word in range(start_W.shape[0]):
        trees.states_NW[root, word] = start_W[word]
    trees.slots_G[slot].num_keys = 0
    trees.slots_G[slot].game_id = game_id
    trees.slots_G[slot].ply = moves_T.shape[0]
    trees.slots_G[slot].noise_added = False
    trees.slots_G[slot].out_of_nodes = False
    trees.slots_G[slot].simulations_left = 0
    trees.slots_G[slot].simulations_done = 0
    for leaf in range(sizes.leaves_per_game):
        trees.pending_GL[slot, leaf] = NONE
    reset_root(legal_moves, trees, sizes, slot)
    for t in range(moves_T.shape[0]):
        if find_edge(trees, root, moves_T[t]) == NONE:
            trees.nodes_N[root].num_edges = 0
            return t
        append_key(trees, sizes, slot, trees.states_NW[root, sizes.key_word])
        play(trees.states_NW, root, trees.states_NW, root, moves_T[t])
        reset_root(legal_moves, trees, sizes, slot)
    return NONE


@kernel(
    types.void(TREES, SIZES, PARAMS, vector(types.int64), vector(types.int64), vector(types.boolean)), allocates=False
)
def begin(
    trees: Trees,
    sizes: Sizes,
    params: SearchParams,
    slots_P: Int64Array,
    simulations_P: Int64Array,
    noise_P: BoolArray,
) -> None:
    """Start a new search in each of these slots, with its number of simulations; a finished game gets none.

    A search without simulations evaluates the root if it has no evaluation.
    """
    for i in range(slots_P.shape[0]):
        slot = slots_P[i]
        root = slot * sizes.nodes_per_game
        trees.slots_G[slot].wants_noise = noise_P[i]
        trees.slots_G[slot].simulations_done = 0
        trees.slots_G[slot].out_of_nodes = False
        trees.slots_G[slot].simulations_left = simulations_P[i] if trees.nodes_N[root].num_edges > 0 else 0
        trees.slots_G[slot].evaluate_root = trees.nodes_N[root].num_edges > 0 and simulations_P[i] == 0
        if trees.nodes_N[root].num_edges > 0 and is_evaluated(trees, root):
            trees.slots_G[slot].evaluate_root = False
            prepare_root(trees, params, slot, root)


@inlined
def plan_compaction(trees: Trees, sizes: Sizes, slot: int, new_root: int) -> bool:
    """Assign new numbers, in order of creation, to the nodes below a child of the root.

    Returns whether the subtree fits into half of the slot.
    """
    start = slot * sizes.nodes_per_game
    num_nodes, num_edges = 0, 0
    for node in range(start, start + trees.slots_G[slot].num_nodes):
        parent = trees.nodes_N[node].parent
        if node == new_root or (parent != NONE and trees.relocation_N[parent].node != NONE):
            trees.relocation_N[node].node = start + num_nodes
            trees.relocation_N[node].edge_shift = (
                trees.nodes_N[node].first_edge - slot * sizes.edges_per_game - num_edges
            )
            num_nodes += 1
            num_edges += max(trees.nodes_N[node].num_edges, 0)
        else:
            trees.relocation_N[node].node = NONE
    return 2 * num_nodes <= sizes.nodes_per_game and 2 * num_edges <= sizes.edges_per_game


@inlined
def compact_subtree(trees: Trees, sizes: Sizes, slot: int, new_root: int) -> None:
    """Move the kept subtree to the start of the slot, as planned.

    Nodes and edges only move down, so nothing is overwritten before it has moved.
    """
    start = slot * sizes.nodes_per_game
    old_end = start + trees.slots_G[slot].num_nodes
    trees.slots_G[slot].root_visits = trees.edges_E[trees.nodes_N[new_root].parent_edge].visits
    num_nodes, num_edges = 0, 0
    for old in range(new_root, old_end):
        new = int64(trees.relocation_N[old].node)
        if new == NONE:
            continue
        parent, parent_edge = trees.nodes_N[old].parent, trees.nodes_N[old].parent_edge
        first, count = int64(trees.nodes_N[old].first_edge), int64(trees.nodes_N[old].num_edges)
        to, num_initialized = first - trees.relocation_N[old].edge_shift, int64(trees.nodes_N[old].num_initialized)
        # Copy the state, the edges, and the fields of the node that stay the same.
        for word in range(trees.states_NW.shape[1]):
            trees.states_NW[new, word] = trees.states_NW[old, word]
        for i in range(count):
            trees.move_E[to + i] = trees.move_E[first + i]
            trees.prior_E[to + i] = trees.prior_E[first + i]
        for i in range(num_initialized):
            trees.edges_E[to + i].visits = trees.edges_E[first + i].visits
            trees.edges_E[to + i].value_sum = trees.edges_E[first + i].value_sum
            trees.edges_E[to + i].child = trees.edges_E[first + i].child
        trees.nodes_N[new].first_edge = to
        trees.nodes_N[new].num_edges = count
        trees.nodes_N[new].num_initialized = num_initialized
        trees.nodes_N[new].value = trees.nodes_N[old].value
        # Link the node to the new numbers of its parent and of the edge that leads to it.
        if old == new_root:
            trees.nodes_N[new].parent = NONE
            trees.nodes_N[new].parent_edge = NONE
        else:
            edge = parent_edge - trees.relocation_N[parent].edge_shift
            trees.nodes_N[new].parent = trees.relocation_N[parent].node
            trees.nodes_N[new].parent_edge = edge
            trees.edges_E[edge].child = new
        num_nodes += 1
        num_edges += max(count, 0)
    trees.slots_G[slot].num_nodes = num_nodes
    trees.slots_G[slot].num_edges = num_edges


@kernel(
    types.int64(PLAY_TYPE, LEGAL_MOVES_TYPE, TREES, SIZES, PARAMS, vector(types.int64), vector(types.uint16)),
    allocates=False,
)
def play_moves(
    play: Any, legal_moves: Any, trees: Trees, sizes: Sizes, params: SearchParams, slots_P: Int64Array, moves_P: Moves
) -> int:
    """Play one move in each slot. With `reuse` its subtree becomes the tree, if half of the slot has room for it.

    Returns the index into `slots_P` of the first illegal move, or NONE. The slots after it have not moved.
    """
    for i in range(slots_P.shape[0]):
        slot, move = slots_P[i], moves_P[i]
        root = slot * sizes.nodes_per_game
        edge = find_edge(trees, root, move)
        if edge == NONE:
            return i
        append_key(trees, sizes, slot, trees.states_NW[root, sizes.key_word])
        trees.slots_G[slot].ply += 1
        trees.slots_G[slot].noise_added = False
        trees.slots_G[slot].simulations_left = 0  # a search that its caller has left does not go on in another root
        trees.slots_G[slot].evaluate_root = False
        initialized = edge < trees.nodes_N[root].first_edge + trees.nodes_N[root].num_initialized
        child = int64(trees.edges_E[edge].child if initialized else NONE)
        keep = params.reuse and child != NONE and is_evaluated(trees, child)
        if keep and plan_compaction(trees, sizes, slot, child):
            compact_subtree(trees, sizes, slot, child)
        else:
            play(trees.states_NW, root, trees.states_NW, root, move)
            reset_root(legal_moves, trees, sizes, slot)
    return NONE
