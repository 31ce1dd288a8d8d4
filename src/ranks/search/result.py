"""What a search gives back, and how it is read from the trees.

Legend: P slots, M most moves of a state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import types

from ranks.jit import kernel
from ranks.search.arena import ARENA, NONE, RULES, SIZES, UNEVALUATED, Arena, Rules, Sizes, matrix, vector, wide
from ranks.search.evaluation import Doubles, Flags, Floats, Ints, Longs, Moves
from ranks.search.gumbel import choose_at_root, improved_policy
from ranks.search.puct import make_ready


class SearchResult(NamedTuple):
    """What the searches of P slots found. Row p is about slot slots_P[p]; its moves are the first num_moves_P[p]."""

    slots_P: Longs
    num_moves_P: Ints
    """0 where the game is over or has not been evaluated."""
    moves_PM: Moves
    """In the order of the tree: by prior, as far as it was needed."""
    visits_PM: Ints
    """Simulations through each move, kept ones included."""
    priors_PM: Floats
    """The evaluator's, with the root's Dirichlet noise in them."""
    q_PM: Doubles
    """Mean value for the side to move at the root; of moves without visits the estimate v_mix."""
    policy_PM: Doubles
    """The target to learn: the share of visits (`puct`), or the improved policy (`gumbel`)."""
    value_P: Doubles
    """Mean value of the root for its side to move; the outcome where the game is over; NaN without an evaluation."""
    chosen_P: Moves
    """The most visited move, of equals the one with the higher prior (`puct`); the one that won the sequential halving
    (`gumbel`). Of no meaning without moves."""
    simulations_P: Longs
    """Made by this search; reused ones do not count."""
    full_P: Flags
    """The search ended early: the arena had no room for more."""


@dataclass
class SearchTimes:
    """Where the time went, in seconds, since the search was made or `times` was replaced."""

    tree_s: float = 0.0
    """In kernels, summed over threads."""
    evaluation_s: float = 0.0
    waiting_s: float = 0.0
    """The caller's thread waited for trees."""
    wall_s: float = 0.0
    num_batches: int = 0
    num_leaves: int = 0
    num_rows: int = 0
    """num_leaves / num_rows is how full the batches were."""


@kernel(
    types.void(
        ARENA,
        SIZES,
        RULES,
        vector(types.int64),
        vector(types.int32),
        matrix(types.uint16),
        matrix(types.int32),
        matrix(types.float32),
        matrix(types.float64),
        matrix(types.float64),
        vector(types.float64),
        vector(types.uint16),
    ),
    allocates=False,
)
def read_roots(
    arena: Arena,
    sizes: Sizes,
    rules: Rules,
    slots_P: Longs,
    num_moves_P: Ints,
    moves_PM: Moves,
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
        first, num_edges = wide(arena.nodes_N[root].first_edge), wide(arena.nodes_N[root].num_edges)
        if num_edges < 0 or arena.nodes_N[root].num_ready == UNEVALUATED:
            value_P[i] = float(arena.nodes_N[root].value) if num_edges < 0 else np.nan
            continue
        num_moves_P[i] = num_edges
        value_sum = float(arena.nodes_N[root].value)
        best = first
        for edge in range(first, first + num_edges):
            moves_PM[i, edge - first] = arena.move_E[edge]
            priors_PM[i, edge - first] = arena.prior_E[edge]
            if edge >= first + arena.nodes_N[root].num_ready:
                make_ready(arena, edge)
            visits_PM[i, edge - first] = arena.edges_E[edge].visits
            value_sum += arena.edges_E[edge].value_sum
            if arena.edges_E[edge].visits > arena.edges_E[best].visits:
                best = edge
        value_P[i] = value_sum / arena.slots_G[slot].root_visits
        improved_policy(arena, rules, root, policy_PM, q_PM, i)
        if rules.gumbel:
            best = choose_at_root(arena, rules, slot, root, NONE)
        else:
            for edge in range(num_edges):
                policy_PM[i, edge] = arena.edges_E[first + edge].visits / max(arena.slots_G[slot].root_visits - 1, 1)
        chosen_P[i] = arena.move_E[best]


def read_result(arena: Arena, sizes: Sizes, rules: Rules, slots_P: Longs) -> SearchResult:
    """What the last searches of these slots found; the arrays are new."""
    count, shape_PM = len(slots_P), (len(slots_P), sizes.max_moves)
    num_moves_P, moves_PM = np.zeros(count, np.int32), np.zeros(shape_PM, np.uint16)
    visits_PM, priors_PM = np.zeros(shape_PM, np.int32), np.zeros(shape_PM, np.float32)
    q_PM, policy_PM = np.zeros(shape_PM), np.zeros(shape_PM)
    value_P, chosen_P = np.zeros(count), np.zeros(count, np.uint16)
    found = (num_moves_P, moves_PM, visits_PM, priors_PM, q_PM, policy_PM, value_P, chosen_P)
    read_roots(arena, sizes, rules, slots_P, *found)
    return SearchResult(slots_P, *found, arena.slots_G["made"][slots_P], arena.slots_G["full"][slots_P] != 0)


def principal_variation(arena: Arena, sizes: Sizes, slot: int, move: int | None) -> list[int]:
    """The most visited moves from the root on, or from the root's `move` on."""
    line: list[int] = []
    node = slot * sizes.nodes_per_game
    while arena.nodes_N["num_ready"][node] > 0:
        first = arena.nodes_N["first_edge"][node]
        edges = slice(first, first + arena.nodes_N["num_ready"][node])
        visits = arena.edges_E["visits"][edges]
        if move is not None and not line:
            visits = np.where(arena.move_E[edges] == move, visits, 0)
        best = int(visits.argmax())
        if visits[best] == 0:
            break
        line.append(int(arena.move_E[edges][best]))
        node = arena.edges_E["child"][edges][best]
    return line
