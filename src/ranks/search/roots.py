"""Roots: where a search starts, the noise it starts with, and how it moves on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types

from ranks.jit import kernel, part
from ranks.search.arena import ARENA, NONE, RULES, SIZES, UNEVALUATED, Arena, Rules, Sizes, vector, wide
from ranks.search.draws import DIRICHLET, GUMBEL, gumbel, log_gamma_draw, mix, stream
from ranks.search.evaluation import Longs, Moves, Words
from ranks.search.game import LOOK_TYPE, PLAY_TYPE
from ranks.search.puct import make_ready


@part
def prepare_root(arena: Arena, rules: Rules, slot: int, root: int) -> None:
    """Noise for an evaluated root, once; and, for a `gumbel` root, the visits that this search starts from."""
    first, num_edges = wide(arena.nodes_N[root].first_edge), wide(arena.nodes_N[root].num_edges)
    if rules.gumbel:
        for i in range(arena.nodes_N[root].num_ready, num_edges):
            make_ready(arena, first + i)
        arena.nodes_N[root].num_ready = num_edges
        for i in range(num_edges):
            arena.root_edges_GM[slot, i].visits_before = arena.edges_E[first + i].visits
    if arena.slots_G[slot].prepared:
        return
    arena.slots_G[slot].prepared = True
    if rules.gumbel:
        key = stream(rules.seed, arena.slots_G[slot].game_id, arena.slots_G[slot].ply, GUMBEL)
        for i in range(num_edges):
            noise = rules.gumbel_scale * gumbel(key, wide(arena.move_E[first + i]))
            arena.root_edges_GM[slot, i].noise = math.log(arena.prior_E[first + i]) + noise
    elif rules.dirichlet_fraction > 0.0:
        add_dirichlet(arena, rules, slot, root)


@part
def add_dirichlet(arena: Arena, rules: Rules, slot: int, root: int) -> None:
    """Mix the priors of a root with Dirichlet(alpha) noise; each move's share hangs on (seed, game, ply, move) only."""
    first, num_edges = wide(arena.nodes_N[root].first_edge), wide(arena.nodes_N[root].num_edges)
    key = stream(rules.seed, arena.slots_G[slot].game_id, arena.slots_G[slot].ply, DIRICHLET)
    highest, total = -np.inf, 0.0
    for i in range(num_edges):
        draw = log_gamma_draw(rules.dirichlet_alpha, mix(key ^ np.uint64(arena.move_E[first + i])))
        arena.root_edges_GM[slot, i].noise = draw
        highest = max(highest, draw)
    for i in range(num_edges):
        total += math.exp(arena.root_edges_GM[slot, i].noise - highest)
    for i in range(num_edges):
        share = rules.dirichlet_fraction * (math.exp(arena.root_edges_GM[slot, i].noise - highest) / total)
        arena.prior_E[first + i] = np.float32(
            (1.0 - rules.dirichlet_fraction) * float(arena.prior_E[first + i]) + share
        )
    num_visited = 0
    while num_visited < arena.nodes_N[root].num_ready and arena.edges_E[first + num_visited].visits > 0:
        num_visited += 1
    arena.nodes_N[root].num_ready = num_visited


@part
def plant(look: Any, arena: Arena, sizes: Sizes, slot: int) -> None:
    """Make the state in the slot's first row the root of an empty tree."""
    root = slot * sizes.nodes_per_game
    first = slot * sizes.edges_per_game
    keys = slot * sizes.keys_per_game
    found = look(arena.states_NW, root, arena.keys_K, keys, keys + arena.slots_G[slot].num_keys, arena.move_E, first)
    arena.slots_G[slot].num_nodes = 1
    arena.slots_G[slot].num_edges = max(found, 0)
    arena.slots_G[slot].root_visits = 0
    arena.nodes_N[root].first_edge = first
    arena.nodes_N[root].num_edges = found
    arena.nodes_N[root].num_ready = UNEVALUATED
    arena.nodes_N[root].parent = NONE
    arena.nodes_N[root].parent_edge = NONE
    if found < 0:
        arena.nodes_N[root].value = np.float32(-2 - found)


@part
def push_key(arena: Arena, sizes: Sizes, slot: int, key: np.uint64) -> None:
    """Append the key of the position that is being left; only the newest `history` are kept."""
    keys, count = slot * sizes.keys_per_game, arena.slots_G[slot].num_keys
    if sizes.history == 0:
        return
    if count == sizes.history:
        for i in range(keys, keys + count - 1):
            arena.keys_K[i] = arena.keys_K[i + 1]
        count -= 1
    arena.keys_K[keys + count] = key
    arena.slots_G[slot].num_keys = count + 1


@part
def edge_of(arena: Arena, root: int, move: np.uint16) -> int:
    """The edge of a legal move, or NONE."""
    first = wide(arena.nodes_N[root].first_edge)
    for edge in range(first, first + arena.nodes_N[root].num_edges):
        if arena.move_E[edge] == move:
            return edge
    return wide(NONE)


@kernel(
    types.int64(
        PLAY_TYPE, LOOK_TYPE, ARENA, SIZES, types.int64, types.uint64, vector(types.uint64), vector(types.uint16)
    ),
    allocates=False,
)
def set_root(
    play: Any, look: Any, arena: Arena, sizes: Sizes, slot: int, game_id: np.uint64, start_W: Words, moves_T: Moves
) -> int:
    """Start a tree at the position after `moves_T`; returns the first of them that is illegal, by number, or NONE."""
    root = slot * sizes.nodes_per_game
    for word in range(start_W.shape[0]):
        arena.states_NW[root, word] = start_W[word]
    arena.slots_G[slot].num_keys = 0
    arena.slots_G[slot].game_id = game_id
    arena.slots_G[slot].ply = moves_T.shape[0]
    arena.slots_G[slot].prepared = False
    arena.slots_G[slot].full = False
    arena.slots_G[slot].budget = 0
    arena.slots_G[slot].made = 0
    for leaf in range(sizes.leaves_per_game):
        arena.pending_GL[slot, leaf] = NONE
    plant(look, arena, sizes, slot)
    for t in range(moves_T.shape[0]):
        if edge_of(arena, root, moves_T[t]) == NONE:
            arena.nodes_N[root].num_edges = 0
            return t
        push_key(arena, sizes, slot, arena.states_NW[root, sizes.key_word])
        play(arena.states_NW, root, arena.states_NW, root, moves_T[t])
        plant(look, arena, sizes, slot)
    return NONE


@kernel(types.void(ARENA, SIZES, RULES, vector(types.int64), vector(types.int64)), allocates=False)
def begin(arena: Arena, sizes: Sizes, rules: Rules, slots_P: Longs, budgets_P: Longs) -> None:
    """Give each of these slots a budget of simulations; a finished game gets none."""
    for i in range(slots_P.shape[0]):
        slot = slots_P[i]
        root = slot * sizes.nodes_per_game
        arena.slots_G[slot].made = 0
        arena.slots_G[slot].full = False
        arena.slots_G[slot].budget = budgets_P[i] if arena.nodes_N[root].num_edges > 0 else 0
        if arena.nodes_N[root].num_edges > 0 and arena.nodes_N[root].num_ready != UNEVALUATED:
            prepare_root(arena, rules, slot, root)


@part
def plan_move(arena: Arena, sizes: Sizes, slot: int, new_root: int) -> bool:
    """Number the nodes below a child of the root anew, in order of creation; whether half the slot holds them."""
    start = slot * sizes.nodes_per_game
    num_nodes, num_edges = 0, 0
    for node in range(start, start + arena.slots_G[slot].num_nodes):
        parent = arena.nodes_N[node].parent
        if node == new_root or (parent != NONE and arena.moved_N[parent].node != NONE):
            arena.moved_N[node].node = start + num_nodes
            arena.moved_N[node].edge_shift = arena.nodes_N[node].first_edge - slot * sizes.edges_per_game - num_edges
            num_nodes += 1
            num_edges += max(arena.nodes_N[node].num_edges, 0)
        else:
            arena.moved_N[node].node = NONE
    return 2 * num_nodes <= sizes.nodes_per_game and 2 * num_edges <= sizes.edges_per_game


@part
def move_subtree(arena: Arena, sizes: Sizes, slot: int, new_root: int) -> None:
    """Carry the planned move out. Nodes and edges only move down, so nothing is overwritten before it has moved."""
    start = slot * sizes.nodes_per_game
    old_end = start + arena.slots_G[slot].num_nodes
    arena.slots_G[slot].root_visits = arena.edges_E[arena.nodes_N[new_root].parent_edge].visits
    num_nodes, num_edges = 0, 0
    for old in range(new_root, old_end):
        new = wide(arena.moved_N[old].node)
        if new == NONE:
            continue
        parent, parent_edge = arena.nodes_N[old].parent, arena.nodes_N[old].parent_edge
        first, count = wide(arena.nodes_N[old].first_edge), wide(arena.nodes_N[old].num_edges)
        to, ready = first - arena.moved_N[old].edge_shift, wide(arena.nodes_N[old].num_ready)
        for word in range(arena.states_NW.shape[1]):
            arena.states_NW[new, word] = arena.states_NW[old, word]
        for i in range(count):
            arena.move_E[to + i] = arena.move_E[first + i]
            arena.prior_E[to + i] = arena.prior_E[first + i]
        for i in range(ready):
            arena.edges_E[to + i].visits = arena.edges_E[first + i].visits
            arena.edges_E[to + i].value_sum = arena.edges_E[first + i].value_sum
            arena.edges_E[to + i].child = arena.edges_E[first + i].child
        arena.nodes_N[new].first_edge = to
        arena.nodes_N[new].num_edges = count
        arena.nodes_N[new].num_ready = ready
        arena.nodes_N[new].value = arena.nodes_N[old].value
        if old == new_root:
            arena.nodes_N[new].parent = NONE
            arena.nodes_N[new].parent_edge = NONE
        else:
            edge = parent_edge - arena.moved_N[parent].edge_shift
            arena.nodes_N[new].parent = arena.moved_N[parent].node
            arena.nodes_N[new].parent_edge = edge
            arena.edges_E[edge].child = new
        num_nodes += 1
        num_edges += max(count, 0)
    arena.slots_G[slot].num_nodes = num_nodes
    arena.slots_G[slot].num_edges = num_edges


@kernel(
    types.int64(PLAY_TYPE, LOOK_TYPE, ARENA, SIZES, RULES, vector(types.int64), vector(types.uint16)), allocates=False
)
def play_moves(play: Any, look: Any, arena: Arena, sizes: Sizes, rules: Rules, slots_P: Longs, moves_P: Moves) -> int:
    """Make each slot's move. Its subtree becomes the tree where that is wished for and half the slot holds it.

    Returns the first of the given slots, by its place in the list, whose move is illegal, or NONE; those after it have
    not moved.
    """
    for i in range(slots_P.shape[0]):
        slot, move = slots_P[i], moves_P[i]
        root = slot * sizes.nodes_per_game
        edge = edge_of(arena, root, move)
        if edge == NONE:
            return i
        push_key(arena, sizes, slot, arena.states_NW[root, sizes.key_word])
        arena.slots_G[slot].ply += 1
        arena.slots_G[slot].prepared = False
        ready = edge < arena.nodes_N[root].first_edge + arena.nodes_N[root].num_ready
        child = wide(arena.edges_E[edge].child if ready else NONE)
        keep = rules.reuse and child != NONE and arena.nodes_N[child].num_ready != UNEVALUATED
        if keep and plan_move(arena, sizes, slot, child):
            move_subtree(arena, sizes, slot, child)
        else:
            play(arena.states_NW, root, arena.states_NW, root, move)
            plant(look, arena, sizes, slot)
    return NONE
