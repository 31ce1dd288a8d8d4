"""Roots: where a search starts, the noise it starts with, how it moves on, and what it found."""

from __future__ import annotations

import math

import numpy as np
from numba import types

from ranks.jit import helper, kernel
from ranks.search.arena import ARENA, NONE, RULES, SIZES, UNEVALUATED, Arena, Rules, Sizes, matrix, vector
from ranks.search.draws import DIRICHLET, GUMBEL, gumbel, log_gamma_draw, mix, stream
from ranks.search.evaluation import Doubles, Floats, Ints, Longs, Moves, Words
from ranks.search.game import LOOK_TYPE, PLAY_TYPE
from ranks.search.gumbel import choose_at_root, improved_policy
from ranks.search.puct import make_ready


@helper
def prepare_root(arena: Arena, rules: Rules, slot: int, root: int) -> None:
    """Noise for an evaluated root, once; and, for a `gumbel` root, the visits that this search starts from."""
    first, num_edges = arena.first_edge_N[root], arena.num_edges_N[root]
    if rules.gumbel:
        for i in range(arena.num_ready_N[root], num_edges):
            make_ready(arena, first + i)
        arena.num_ready_N[root] = num_edges
        for i in range(num_edges):
            arena.visits_before_GM[slot, i] = arena.visits_E[first + i]
    if arena.prepared_G[slot]:
        return
    arena.prepared_G[slot] = True
    if rules.gumbel:
        key = stream(rules.seed, arena.game_id_G[slot], arena.ply_G[slot], GUMBEL)
        for i in range(num_edges):
            noise = rules.gumbel_scale * gumbel(key, arena.move_E[first + i])
            arena.gumbel_GM[slot, i] = math.log(arena.prior_E[first + i]) + noise
    elif rules.dirichlet_fraction > 0.0:
        add_dirichlet(arena, rules, slot, root)


@helper
def add_dirichlet(arena: Arena, rules: Rules, slot: int, root: int) -> None:
    """Mix the priors of a root with Dirichlet(alpha) noise; each move's share hangs on (seed, game, ply, move) only."""
    first, num_edges = arena.first_edge_N[root], arena.num_edges_N[root]
    key = stream(rules.seed, arena.game_id_G[slot], arena.ply_G[slot], DIRICHLET)
    draws = np.empty(num_edges, np.float64)
    for i in range(num_edges):
        draws[i] = log_gamma_draw(rules.dirichlet_alpha, mix(key ^ np.uint64(arena.move_E[first + i])))
    draws = np.exp(draws - np.max(draws))
    total = np.sum(draws)
    keep = 1.0 - rules.dirichlet_fraction
    for i in range(num_edges):
        mixed = keep * float(arena.prior_E[first + i]) + rules.dirichlet_fraction * (draws[i] / total)
        arena.prior_E[first + i] = np.float32(mixed)
    num_visited = 0
    while num_visited < arena.num_ready_N[root] and arena.visits_E[first + num_visited] > 0:
        num_visited += 1
    arena.num_ready_N[root] = num_visited


@helper
def plant(look, arena: Arena, sizes: Sizes, slot: int) -> None:
    """Make the state in the slot's first row the root of an empty tree."""
    root = slot * sizes.nodes_per_game
    first = slot * sizes.edges_per_game
    keys = slot * sizes.keys_per_game
    found = look(arena.states_NW, root, arena.keys_K, keys, keys + arena.num_keys_G[slot], arena.move_E, first)
    arena.num_nodes_G[slot] = 1
    arena.num_edges_G[slot] = max(found, 0)
    arena.root_visits_G[slot] = 0
    arena.first_edge_N[root] = first
    arena.num_edges_N[root] = found
    arena.num_ready_N[root] = UNEVALUATED
    arena.parent_N[root] = NONE
    arena.parent_edge_N[root] = NONE
    if found < 0:
        arena.value_N[root] = np.float32(-2 - found)


@helper
def remember(arena: Arena, sizes: Sizes, slot: int, key: np.uint64) -> None:
    """Append the key of the position that is being left; only the newest `history` are kept."""
    keys, count = slot * sizes.keys_per_game, arena.num_keys_G[slot]
    if sizes.history == 0:
        return
    if count == sizes.history:
        for i in range(keys, keys + count - 1):
            arena.keys_K[i] = arena.keys_K[i + 1]
        count -= 1
    arena.keys_K[keys + count] = key
    arena.num_keys_G[slot] = count + 1


@helper
def is_legal(arena: Arena, sizes: Sizes, slot: int, move: np.uint16) -> bool:
    root = slot * sizes.nodes_per_game
    first = arena.first_edge_N[root]
    for edge in range(first, first + arena.num_edges_N[root]):
        if arena.move_E[edge] == move:
            return True
    return False


@kernel(
    types.int64(
        PLAY_TYPE, LOOK_TYPE, ARENA, SIZES, types.int64, types.uint64, vector(types.uint64), vector(types.uint16)
    )
)
def set_root(
    play, look, arena: Arena, sizes: Sizes, slot: int, game_id: np.uint64, start_W: Words, moves_T: Moves
) -> int:
    """Start a tree at the position after `moves_T`; returns the first of them that is illegal, by number, or NONE."""
    root = slot * sizes.nodes_per_game
    for word in range(start_W.shape[0]):
        arena.states_NW[root, word] = start_W[word]
    arena.num_keys_G[slot] = 0
    arena.game_id_G[slot] = game_id
    arena.ply_G[slot] = moves_T.shape[0]
    arena.prepared_G[slot] = False
    arena.full_G[slot] = False
    arena.budget_G[slot] = 0
    arena.made_G[slot] = 0
    arena.pending_GL[slot] = NONE
    plant(look, arena, sizes, slot)
    for t in range(moves_T.shape[0]):
        if not is_legal(arena, sizes, slot, moves_T[t]):
            arena.num_edges_N[root] = 0
            return t
        remember(arena, sizes, slot, arena.states_NW[root, sizes.key_word])
        play(arena.states_NW, root, arena.states_NW, root, moves_T[t])
        plant(look, arena, sizes, slot)
    return NONE


@kernel(types.void(ARENA, SIZES, RULES, vector(types.int64), vector(types.int64)))
def begin(arena: Arena, sizes: Sizes, rules: Rules, slots_P: Longs, budgets_P: Longs) -> None:
    """Give each of these slots a budget of simulations; a finished game gets none."""
    for i in range(slots_P.shape[0]):
        slot = slots_P[i]
        root = slot * sizes.nodes_per_game
        arena.made_G[slot] = 0
        arena.full_G[slot] = False
        arena.budget_G[slot] = budgets_P[i] if arena.num_edges_N[root] > 0 else 0
        if arena.num_edges_N[root] > 0 and arena.num_ready_N[root] != UNEVALUATED:
            prepare_root(arena, rules, slot, root)


@helper
def keep_subtree(arena: Arena, sizes: Sizes, slot: int, new_root: int) -> None:
    """Move the subtree of a child of the root to the slot's start, in order of creation.

    Nodes and edges only ever move down, so nothing is overwritten before it has been moved.
    """
    start = slot * sizes.nodes_per_game
    old_end = start + arena.num_nodes_G[slot]
    moved_to = np.full(old_end - start, NONE, np.int32)
    edge_shift = np.empty(old_end - start, np.int32)
    arena.root_visits_G[slot] = arena.visits_E[arena.parent_edge_N[new_root]]
    num_nodes, next_edge = 0, slot * sizes.edges_per_game
    for old in range(new_root, old_end):
        if old != new_root and moved_to[arena.parent_N[old] - start] == NONE:
            continue
        new = start + num_nodes
        num_nodes += 1
        moved_to[old - start] = new
        if old == new_root:
            arena.parent_N[new] = NONE
            arena.parent_edge_N[new] = NONE
        else:
            parent = arena.parent_N[old] - start
            arena.parent_edge_N[new] = arena.parent_edge_N[old] - edge_shift[parent]
            arena.parent_N[new] = moved_to[parent]
            arena.child_E[arena.parent_edge_N[new]] = new
        for word in range(arena.states_NW.shape[1]):
            arena.states_NW[new, word] = arena.states_NW[old, word]
        first, num_edges, num_ready = arena.first_edge_N[old], arena.num_edges_N[old], arena.num_ready_N[old]
        arena.value_N[new] = arena.value_N[old]
        arena.num_edges_N[new] = num_edges
        arena.num_ready_N[new] = num_ready
        arena.first_edge_N[new] = next_edge
        edge_shift[old - start] = first - next_edge
        for i in range(num_edges):
            arena.move_E[next_edge + i] = arena.move_E[first + i]
            arena.prior_E[next_edge + i] = arena.prior_E[first + i]
        for i in range(num_ready):
            arena.visits_E[next_edge + i] = arena.visits_E[first + i]
            arena.value_sum_E[next_edge + i] = arena.value_sum_E[first + i]
            arena.child_E[next_edge + i] = arena.child_E[first + i]
        next_edge += max(num_edges, 0)
    arena.num_nodes_G[slot] = num_nodes
    arena.num_edges_G[slot] = next_edge - slot * sizes.edges_per_game


@helper
def subtree_size(arena: Arena, sizes: Sizes, slot: int, top: int) -> tuple[int, int]:
    """Nodes and edges of a subtree."""
    start = slot * sizes.nodes_per_game
    old_end = start + arena.num_nodes_G[slot]
    inside = np.zeros(old_end - start, np.bool_)
    inside[top - start] = True
    nodes, edges = 1, max(arena.num_edges_N[top], 0)
    for node in range(top + 1, old_end):
        if inside[arena.parent_N[node] - start]:
            inside[node - start] = True
            nodes += 1
            edges += max(arena.num_edges_N[node], 0)
    return nodes, edges


@kernel(types.int64(PLAY_TYPE, LOOK_TYPE, ARENA, SIZES, RULES, vector(types.int64), vector(types.uint16)))
def play_moves(play, look, arena: Arena, sizes: Sizes, rules: Rules, slots_P: Longs, moves_P: Moves) -> int:
    """Make each slot's move. Its subtree becomes the tree where that is wished for and half the slot holds it.

    Returns the first of the given slots, by its place in the list, whose move is illegal, or NONE; those after it have
    not moved.
    """
    for i in range(slots_P.shape[0]):
        slot, move = slots_P[i], moves_P[i]
        if not is_legal(arena, sizes, slot, move):
            return i
        root = slot * sizes.nodes_per_game
        remember(arena, sizes, slot, arena.states_NW[root, sizes.key_word])
        arena.ply_G[slot] += 1
        arena.prepared_G[slot] = False
        child = NONE
        first = arena.first_edge_N[root]
        for edge in range(first, first + arena.num_ready_N[root]):
            if arena.move_E[edge] == move:
                child = arena.child_E[edge]
        fits = False
        if rules.reuse and child != NONE and arena.num_ready_N[child] != UNEVALUATED:
            nodes, edges = subtree_size(arena, sizes, slot, child)
            fits = 2 * nodes <= sizes.nodes_per_game and 2 * edges <= sizes.edges_per_game
        if fits:
            keep_subtree(arena, sizes, slot, child)
        else:
            play(arena.states_NW, root, arena.states_NW, root, move)
            plant(look, arena, sizes, slot)
    return NONE


@kernel(
    types.void(
        ARENA,
        SIZES,
        RULES,
        vector(types.int64),
        matrix(types.uint16),
        vector(types.int32),
        matrix(types.int32),
        matrix(types.float32),
        matrix(types.float64),
        matrix(types.float64),
        vector(types.float64),
        vector(types.uint16),
    )
)
def read_roots(
    arena: Arena,
    sizes: Sizes,
    rules: Rules,
    slots_P: Longs,
    moves_PM: Moves,
    num_moves_P: Ints,
    visits_PM: Ints,
    priors_PM: Floats,
    q_PM: Doubles,
    policy_PM: Doubles,
    value_P: Doubles,
    chosen_P: Moves,
) -> None:
    """What the searches of these slots have found, as SearchResult describes it; the arrays hold zeros before."""
    for i in range(slots_P.shape[0]):
        slot = slots_P[i]
        root = slot * sizes.nodes_per_game
        first, num_edges = arena.first_edge_N[root], arena.num_edges_N[root]
        if num_edges < 0 or arena.num_ready_N[root] == UNEVALUATED:
            value_P[i] = float(arena.value_N[root]) if num_edges < 0 else np.nan
            continue
        num_moves_P[i] = num_edges
        value_sum = float(arena.value_N[root])
        best = first
        for edge in range(first, first + num_edges):
            moves_PM[i, edge - first] = arena.move_E[edge]
            priors_PM[i, edge - first] = arena.prior_E[edge]
            if edge >= first + arena.num_ready_N[root]:
                make_ready(arena, edge)
            visits_PM[i, edge - first] = arena.visits_E[edge]
            value_sum += arena.value_sum_E[edge]
            if arena.visits_E[edge] > arena.visits_E[best]:
                best = edge
        value_P[i] = value_sum / arena.root_visits_G[slot]
        improved_policy(arena, rules, root, policy_PM[i], q_PM[i])
        if rules.gumbel:
            best = choose_at_root(arena, rules, slot, root, NONE)
        else:
            for edge in range(num_edges):
                policy_PM[i, edge] = arena.visits_E[first + edge] / max(arena.root_visits_G[slot] - 1, 1)
        chosen_P[i] = arena.move_E[best]
