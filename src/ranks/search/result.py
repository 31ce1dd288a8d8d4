"""The result of a search, and how it is read from the trees. Nothing here writes to the trees.

Legend: P slots, M most moves of a state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from ranks.jit import kernel
from ranks.search.evaluation import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array, Moves
from ranks.search.gumbel import improved_policy, select_edge_gumbel_root
from ranks.search.trees import (
    NONE,
    PARAMS,
    SIZES,
    TREES,
    SearchParams,
    Sizes,
    Trees,
    int64,
    is_evaluated,
    is_finished,
    matrix,
    vector,
)


class SearchResult(NamedTuple):
    """The results of the searches of P slots. Row p belongs to slot slots_P[p]; it has num_moves_P[p] moves."""

    slots_P: Int64Array
    num_moves_P: Int32Array
    """0 where the game is over or the root has not been evaluated."""
    moves_PM: Moves
    """In the order of the tree: sorted by prior as far as the search has needed it."""
    visits_PM: Int32Array
    """Visit counts: simulations through each move, those of a reused subtree included."""
    priors_PM: Float32Array
    """The evaluator's priors, with the root's Dirichlet noise mixed in."""
    q_PM: Float64Array
    """Mean value for the side to move at the root; the estimate v_mix for moves without visits."""
    policy_PM: Float64Array
    """The policy target for training: the share of visits (`puct`), or the improved policy (`gumbel`)."""
    value_P: Float64Array
    """Mean value of the root for its side to move; the outcome where the game is over; NaN without an evaluation."""
    chosen_P: Moves
    """The move to play. `puct`: the most visited move, of equals the one with the higher prior. `gumbel`: the winner of
    sequential halving. Meaningless in rows without moves."""
    simulations_P: Int64Array
    """Simulations done by this search, without the visits of a reused subtree."""
    out_of_nodes_P: BoolArray
    """The search ended early because the slot had no room for more nodes."""


@kernel(
    types.void(
        TREES,
        SIZES,
        PARAMS,
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
    trees: Trees,
    sizes: Sizes,
    params: SearchParams,
    slots_P: Int64Array,
    num_moves_P: Int32Array,
    moves_PM: Moves,
    visits_PM: Int32Array,
    priors_PM: Float32Array,
    q_PM: Float64Array,
    policy_PM: Float64Array,
    value_P: Float64Array,
    chosen_P: Moves,
) -> None:
    """Fill one row for each slot, as SearchResult describes it. The output arrays must hold zeros before."""
    for i in range(slots_P.shape[0]):
        slot = slots_P[i]
        root = slot * sizes.nodes_per_game
        if is_finished(trees, root) or not is_evaluated(trees, root):
            value_P[i] = float(trees.nodes_N[root].value) if is_finished(trees, root) else np.nan
            continue
        first, num_edges = int64(trees.nodes_N[root].first_edge), int64(trees.nodes_N[root].num_edges)
        end_initialized = first + trees.nodes_N[root].num_initialized
        num_moves_P[i] = num_edges
        value_sum = float(trees.nodes_N[root].value)
        best = first
        # Moves, priors and visit counts. Edges that have no statistics yet have no visits: their row keeps its zero.
        for edge in range(first, first + num_edges):
            moves_PM[i, edge - first] = trees.move_E[edge]
            priors_PM[i, edge - first] = trees.prior_E[edge]
            if edge < end_initialized:
                visits_PM[i, edge - first] = trees.edges_E[edge].visits
                value_sum += trees.edges_E[edge].value_sum
                if trees.edges_E[edge].visits > trees.edges_E[best].visits:
                    best = edge
        value_P[i] = value_sum / trees.slots_G[slot].root_visits
        # The policy target and the move to play. A Gumbel root that has no noise yet has not been searched.
        improved_policy(trees, params, root, policy_PM, q_PM, i)
        if not params.gumbel:
            for edge in range(num_edges):
                policy_PM[i, edge] = visits_PM[i, edge] / max(trees.slots_G[slot].root_visits - 1, 1)
        elif trees.slots_G[slot].noise_added:
            best = select_edge_gumbel_root(trees, params, slot, root, NONE)
        chosen_P[i] = trees.move_E[best]


def read_result(trees: Trees, sizes: Sizes, params: SearchParams, slots_P: Int64Array) -> SearchResult:
    """The results of the last searches of these slots, in new arrays."""
    count, shape_PM = len(slots_P), (len(slots_P), sizes.max_moves)
    num_moves_P, moves_PM = np.zeros(count, np.int32), np.zeros(shape_PM, np.uint16)
    visits_PM, priors_PM = np.zeros(shape_PM, np.int32), np.zeros(shape_PM, np.float32)
    q_PM, policy_PM = np.zeros(shape_PM), np.zeros(shape_PM)
    value_P, chosen_P = np.zeros(count), np.zeros(count, np.uint16)
    columns = (num_moves_P, moves_PM, visits_PM, priors_PM, q_PM, policy_PM, value_P, chosen_P)
    read_roots(trees, sizes, params, slots_P, *columns)
    return SearchResult(
        slots_P,
        *columns,
        simulations_P=trees.slots_G["simulations_done"][slots_P],
        out_of_nodes_P=trees.slots_G["out_of_nodes"][slots_P] != 0,
    )


def likeliest_moves(result: SearchResult) -> Moves:
    """uint16[P]: the move with the highest prior in each slot, which is what the evaluator plays without a search."""
    return result.moves_PM[np.arange(len(result.slots_P)), result.priors_PM.argmax(1)]


def principal_variation(trees: Trees, sizes: Sizes, slot: int, move: int | None) -> list[int]:
    """The most visited moves from the root on. With `move`, the line starts with this move of the root."""
    line: list[int] = []
    node = slot * sizes.nodes_per_game
    while trees.nodes_N["num_initialized"][node] > 0:
        first = trees.nodes_N["first_edge"][node]
        edges = slice(first, first + trees.nodes_N["num_initialized"][node])
        visits = trees.edges_E["visits"][edges]
        if move is not None and not line:
            visits = np.where(trees.move_E[edges] == move, visits, 0)
        best = int(visits.argmax())
        if visits[best] == 0:
            break
        line.append(int(trees.move_E[edges][best]))
        node = trees.edges_E["child"][edges][best]
    return line
