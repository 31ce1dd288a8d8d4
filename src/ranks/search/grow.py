"""One tick of many trees: the evaluations that came back are written in and backed up, then new leaves are selected.

A tree makes one simulation per leaf (AlphaZero's select, expand, evaluate, back up). A simulation that ends in a
finished game needs no evaluation: it is backed up at once and the tree selects again within the same tick.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from ranks.jit import kernel, part
from ranks.search.arena import ARENA, NONE, RULES, SIZES, UNEVALUATED, Arena, Rules, Sizes, matrix, vector, wide
from ranks.search.evaluation import Floats, Ints, Moves, Words
from ranks.search.game import LOOK_TYPE, PLAY_TYPE
from ranks.search.gumbel import choose_at_root, choose_below_root
from ranks.search.puct import choose_by_puct
from ranks.search.roots import prepare_root

SUM_TOLERANCE = 0.02
"""So much may the priors of bfloat16 networks miss one."""
VALUE_TOLERANCE = 1e-3
MOST_FINISHED = 64
"""Simulations of one tree that may end in finished games within one tick, so that no tick takes long."""


@part
def expand(arena: Arena, node: int, priors_BM: Floats, row: int, value: float) -> bool:
    """Write an evaluation into its node; False if it is none."""
    first, num_edges = arena.nodes_N[node].first_edge, arena.nodes_N[node].num_edges
    total = 0.0
    for i in range(num_edges):
        prior = float(priors_BM[row, i])
        if not prior >= 0.0:
            return False
        total += prior
    if not (abs(total - 1.0) <= SUM_TOLERANCE and abs(value) <= 1.0 + VALUE_TOLERANCE):
        return False
    scale = 1.0 / total
    for i in range(num_edges):
        arena.prior_E[first + i] = np.float32(float(priors_BM[row, i]) * scale)
    arena.nodes_N[node].value = np.float32(value)
    arena.nodes_N[node].num_ready = 0
    return True


@part
def back_up(arena: Arena, slot: int, node: int, value: float, was_lost: bool) -> None:
    """Add a value for the side to move at `node` to all edges above it, in place of its virtual loss if it had one."""
    visits, loss = (0, 1.0) if was_lost else (1, 0.0)
    arena.slots_G[slot].root_visits += visits
    while arena.nodes_N[node].parent != NONE:
        value = -value
        edge = arena.nodes_N[node].parent_edge
        arena.edges_E[edge].visits += visits
        arena.edges_E[edge].value_sum += value + loss
        node = wide(arena.nodes_N[node].parent)


@part
def lose_virtually(arena: Arena, slot: int, node: int) -> None:
    """Count a leaf under way as a loss for every side that leads to it."""
    arena.slots_G[slot].root_visits += 1
    while arena.nodes_N[node].parent != NONE:
        edge = arena.nodes_N[node].parent_edge
        arena.edges_E[edge].visits += 1
        arena.edges_E[edge].value_sum -= 1.0
        node = wide(arena.nodes_N[node].parent)


@part
def add_child(play: Any, look: Any, arena: Arena, sizes: Sizes, slot: int, node: int, edge: int, num_keys: int) -> int:
    """The node behind an edge; it is finished, or its moves are known and it is unevaluated."""
    child = slot * sizes.nodes_per_game + arena.slots_G[slot].num_nodes
    first = slot * sizes.edges_per_game + arena.slots_G[slot].num_edges
    keys = slot * sizes.keys_per_game
    play(arena.states_NW, node, arena.states_NW, child, arena.move_E[edge])
    found = look(arena.states_NW, child, arena.keys_K, keys, keys + num_keys, arena.move_E, first)
    arena.slots_G[slot].num_nodes += 1
    arena.slots_G[slot].num_edges += max(found, 0)
    arena.nodes_N[child].first_edge = first
    arena.nodes_N[child].num_edges = found
    arena.nodes_N[child].num_ready = UNEVALUATED
    arena.nodes_N[child].parent = node
    arena.nodes_N[child].parent_edge = edge
    arena.edges_E[edge].child = child
    if found < 0:
        arena.nodes_N[child].value = np.float32(-2 - found)
    return child


@part
def select(play: Any, look: Any, arena: Arena, sizes: Sizes, rules: Rules, slot: int) -> int:
    """Descend from the root to a node that is new or finished; NONE where the path meets a leaf that is under way, or
    no room is left."""
    node = slot * sizes.nodes_per_game
    visits = arena.slots_G[slot].root_visits
    num_keys = arena.slots_G[slot].num_keys
    keys = slot * sizes.keys_per_game
    while True:
        if arena.nodes_N[node].num_edges < 0:
            return node
        if arena.nodes_N[node].num_ready == UNEVALUATED:
            return NONE
        if (
            num_keys == sizes.keys_per_game
            or arena.slots_G[slot].num_nodes == sizes.nodes_per_game
            or arena.slots_G[slot].num_edges + sizes.max_moves > sizes.edges_per_game
        ):
            arena.slots_G[slot].full = True
            return NONE
        if not rules.gumbel:
            edge = choose_by_puct(arena, rules, node, visits)
        elif arena.nodes_N[node].parent != NONE:
            edge = choose_below_root(arena, rules, node, visits)
        else:
            considered = wide(arena.schedule_GS[slot, arena.slots_G[slot].made])
            edge = choose_at_root(arena, rules, slot, node, considered)
        arena.keys_K[keys + num_keys] = arena.states_NW[node, sizes.key_word]
        num_keys += 1
        visits = wide(arena.edges_E[edge].visits)
        if arena.edges_E[edge].child == NONE:
            return add_child(play, look, arena, sizes, slot, node, edge, num_keys)
        node = wide(arena.edges_E[edge].child)


@part
def next_leaf(play: Any, look: Any, arena: Arena, sizes: Sizes, rules: Rules, slot: int) -> int:
    """The next node of this tree to be evaluated, or NONE if there is none in this tick."""
    root = slot * sizes.nodes_per_game
    if arena.slots_G[slot].budget > 0 and arena.nodes_N[root].num_ready == UNEVALUATED:
        return root if arena.pending_GL[slot, 0] == NONE else NONE
    finished = 0
    while arena.slots_G[slot].budget > 0 and finished < MOST_FINISHED:
        node = select(play, look, arena, sizes, rules, slot)
        if arena.slots_G[slot].full:
            arena.slots_G[slot].budget = 0
        if node == NONE:
            return NONE
        arena.slots_G[slot].budget -= 1
        arena.slots_G[slot].made += 1
        if arena.nodes_N[node].num_edges > 0:
            return node
        back_up(arena, slot, node, float(arena.nodes_N[node].value), False)
        finished += 1
    return NONE


STATES, MOVES, NUM_MOVES, PRIORS, VALUES = (
    matrix(types.uint64),
    matrix(types.uint16),
    vector(types.int32),
    matrix(types.float32),
    vector(types.float32),
)


@kernel(
    types.int64(
        PLAY_TYPE, LOOK_TYPE, ARENA, SIZES, RULES, *(types.int64,) * 3, STATES, MOVES, NUM_MOVES, PRIORS, VALUES
    ),
    allocates=False,
)
def advance(
    play: Any,
    look: Any,
    arena: Arena,
    sizes: Sizes,
    rules: Rules,
    first_slot: int,
    end_slot: int,
    first_row: int,
    states_BW: Words,
    moves_BM: Moves,
    num_moves_B: Ints,
    priors_BM: Floats,
    value_B: Floats,
) -> int:
    """One tick of the slots first_slot to end_slot - 1, whose leaves stand in the batch from `first_row` on.

    Returns the first row whose evaluation is none (nothing is then written for it and the slots after it), or NONE.
    """
    virtual = sizes.leaves_per_game > 1
    for slot in range(first_slot, end_slot):
        root = slot * sizes.nodes_per_game
        start = first_row + (slot - first_slot) * sizes.leaves_per_game
        for leaf in range(sizes.leaves_per_game):
            node = wide(arena.pending_GL[slot, leaf])
            if node == NONE:
                continue
            row = start + leaf
            if not expand(arena, node, priors_BM, row, float(value_B[row])):
                return row
            arena.pending_GL[slot, leaf] = NONE
            if node == root:
                arena.slots_G[slot].root_visits = 1
                prepare_root(arena, rules, slot, root)
            else:
                back_up(arena, slot, node, float(arena.nodes_N[node].value), virtual)
        for leaf in range(sizes.leaves_per_game):
            row = start + leaf
            node = next_leaf(play, look, arena, sizes, rules, slot)
            arena.pending_GL[slot, leaf] = node
            num_moves_B[row] = 0
            if node == NONE:
                continue
            if virtual and node != root:
                lose_virtually(arena, slot, node)
            num_moves_B[row] = arena.nodes_N[node].num_edges
            for word in range(states_BW.shape[1]):
                states_BW[row, word] = arena.states_NW[node, word]
            for i in range(arena.nodes_N[node].num_edges):
                moves_BM[row, i] = arena.move_E[arena.nodes_N[node].first_edge + i]
    return NONE
