"""Policy improvement by planning with Gumbel (Danihelka, Guez, Schrittwieser, Silver, ICLR 2022).

    root        sequential halving over the moves with the highest  g(a) + log P(a) + sigma(q(a))
    interior    the move with the highest  pi'(a) - N(a) / (1 + sum of N)
    pi'         softmax(log P + sigma(completed q)), the improved policy: what the network learns

g(a) is Gumbel noise, P(a) the prior, N(a) the visit count. Completed q(a) is the mean value where a was visited, else
v_mix, a mixture of the node's own value and of the visited ones (their appendix D). sigma(q) = (c_visit + max N) *
c_scale * q with q in [0, 1] (their equation 8). The names root and interior, the sequence of considered visits, and the
order of the steps follow mctx (github.com/google-deepmind/mctx, `action_selection.py`, `qtransforms.py`,
`seq_halving.py`), the authors' own implementation; a test compares whole searches with it.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ranks.jit import inlined
from ranks.search.evaluation import Float64Array
from ranks.search.puct import first_unvisited_edge
from ranks.search.trees import NONE, SearchParams, Trees, int64, mean_value

MIN_PRIOR = 1e-38
"""Keeps v_mix defined where the visited moves have prior 0."""
MIN_LOGIT = -1e9
"""A considered move with prior 0 gets at least this score, so that it can be chosen if it is the only one."""


@functools.lru_cache(maxsize=1024)
def considered_visits(num_considered: int, simulations: int) -> tuple[int, ...]:
    """How many visits a move must have to be considered, at each simulation of sequential halving.

    This is the table of mctx (`get_sequence_of_considered_visits` in `seq_halving.py`). At simulation s the search
    chooses the best of the moves that have exactly considered_visits[s] visits. ceil(log2 m) rounds halve the m moves;
    each shares simulations / ceil(log2 m) among the moves left, at least one visit each (Karnin et al. 2013, "Almost
    optimal exploration in multi-armed bandits"; figure 1 of the paper). The simulations that rounding leaves over go to
    the last two moves. considered_visits(4, 8) is (0, 0, 0, 0, 1, 1, 2, 2).
    """
    if num_considered <= 1:
        return tuple(range(simulations))
    rounds = math.ceil(math.log2(num_considered))
    sequence: list[int] = []
    visits, left = 0, num_considered
    while len(sequence) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            sequence += [visits] * left
            visits += 1
        left = max(2, left // 2)
    return tuple(sequence[:simulations])


@inlined
def select_edge_gumbel_root(trees: Trees, params: SearchParams, slot: int, node: int, considered: int) -> int:
    """The edge with the highest g + log P + sigma(q) among those with `considered` visits of this search.

    With considered = NONE, those with the most visits are considered: this is the move to play.
    """
    first = int64(trees.nodes_N[node].first_edge)
    end = first + trees.nodes_N[node].num_edges
    if considered == NONE:
        for edge in range(first, end):
            considered = max(
                considered, trees.edges_E[edge].visits - trees.root_edges_GM[slot, edge - first].visits_before
            )
    mixed, slope, offset = mixed_value_and_sigma(trees, params, first, end, False, float(trees.nodes_N[node].value))
    # Sequential halving: only edges with exactly the considered number of visits compete.
    best, best_score = int64(NONE), -np.inf
    for edge in range(first, end):
        visits = trees.edges_E[edge].visits
        if visits - trees.root_edges_GM[slot, edge - first].visits_before != considered:
            continue
        q = mean_value(trees, edge) if visits > 0 else mixed
        score = max(trees.root_edges_GM[slot, edge - first].noise + slope * q + offset, MIN_LOGIT)
        if score > best_score:
            best, best_score = edge, score
    return best


@inlined
def select_edge_gumbel_interior(trees: Trees, params: SearchParams, node: int, node_visits: int) -> int:
    """The edge with the highest pi'(a) - N(a) / (1 + sum of N). Reads the visited edges and the best unvisited one."""
    first = int64(trees.nodes_N[node].first_edge)
    num_visited = int64(0)
    while num_visited < trees.nodes_N[node].num_initialized and trees.edges_E[first + num_visited].visits > 0:
        num_visited += 1
    unvisited = first_unvisited_edge(trees, node, num_visited)
    end = first + num_visited
    mixed, slope, offset = mixed_value_and_sigma(
        trees, params, first, end, unvisited != NONE, float(trees.nodes_N[node].value)
    )
    # The highest sigma(q) of all moves with a prior, which is subtracted in every exponent of the softmax.
    unvisited_prior = float(trees.prior_E[unvisited]) if unvisited != NONE else 0.0
    highest = slope * mixed + offset if unvisited_prior > 0.0 else -np.inf
    visited_prior = 0.0
    for edge in range(first, end):
        if trees.prior_E[edge] > 0.0:
            highest = max(highest, slope * mean_value(trees, edge) + offset)
        visited_prior += float(trees.prior_E[edge])
    # The normaliser of the softmax. The moves without visits all have q = v_mix, so their prior mass, the rest to one,
    # enters as one term.
    unvisited_weight = math.exp(slope * mixed + offset - highest) if unvisited_prior > 0.0 else 0.0
    normaliser = max(1.0 - visited_prior, 0.0) * unvisited_weight
    for edge in range(first, end):
        normaliser += unnormalised_policy(trees, edge, slope, offset - highest)
    # Improved policy minus visit share; of the moves without visits the one with the highest prior is the best.
    best, best_score = int64(NONE), -np.inf
    for edge in range(first, end):
        policy = unnormalised_policy(trees, edge, slope, offset - highest) / normaliser
        score = policy - trees.edges_E[edge].visits / float(node_visits)
        if score > best_score:
            best, best_score = edge, score
    if unvisited != NONE and unvisited_prior * unvisited_weight / normaliser > best_score:
        best = unvisited
    return best


@inlined
def unnormalised_policy(trees: Trees, edge: int, slope: float, offset: float) -> float:
    """The improved policy of a visited edge, before the softmax is normalised."""
    if trees.prior_E[edge] == 0.0:
        return 0.0
    return float(trees.prior_E[edge]) * math.exp(slope * mean_value(trees, edge) + offset)


@inlined
def mixed_value_and_sigma(
    trees: Trees, params: SearchParams, first: int, end: int, more_unvisited: bool, own_value: float
) -> tuple[float, float, float]:
    """v_mix, and sigma as a line: sigma(q) = slope * q + offset. From the visited edges among first to end - 1.

    `more_unvisited`: the node has edges without visits outside this range.
    """
    total, most, prior_sum, weighted = 0, 0, 0.0, 0.0
    low, high = np.inf, -np.inf
    some_unvisited = more_unvisited
    for edge in range(first, end):
        visits = trees.edges_E[edge].visits
        if visits == 0:
            some_unvisited = True
            continue
        q = mean_value(trees, edge)
        prior = max(float(trees.prior_E[edge]), MIN_PRIOR)
        total += visits
        most = max(most, visits)
        prior_sum += prior
        weighted += prior * q
        low, high = min(low, q), max(high, q)
    # v_mix: the network's value counts as one visit, the prior-weighted mean of the visited q as all the others.
    mixed = own_value if total == 0 else (own_value + total * weighted / prior_sum) / (total + 1)
    # sigma maps q to [0, 1] first: from [-1, 1], or from the range of the completed q of this node.
    scale = (params.c_visit + most) * params.c_scale
    if not params.rescale_values:
        return mixed, 0.5 * scale, 0.5 * scale
    if some_unvisited:
        low, high = min(low, mixed), max(high, mixed)
    slope = scale / max(high - low, 1e-8)
    return mixed, slope, -low * slope


@inlined
def improved_policy(
    trees: Trees, params: SearchParams, node: int, policy_PM: Float64Array, q_PM: Float64Array, row: int
) -> None:
    """Write the improved policy and the completed q of an evaluated node into one row; the trees are only read."""
    first = int64(trees.nodes_N[node].first_edge)
    num_edges = int64(trees.nodes_N[node].num_edges)
    num_initialized = int64(trees.nodes_N[node].num_initialized)
    mixed, slope, offset = mixed_value_and_sigma(
        trees, params, first, first + num_initialized, num_initialized < num_edges, float(trees.nodes_N[node].value)
    )
    # Completed q, and the highest sigma(q), which is subtracted in every exponent of the softmax.
    highest = -np.inf
    for i in range(num_edges):
        visited = i < num_initialized and trees.edges_E[first + i].visits > 0
        q_PM[row, i] = mean_value(trees, first + i) if visited else mixed
        if trees.prior_E[first + i] > 0.0:
            highest = max(highest, slope * q_PM[row, i] + offset)
    total = 0.0
    for i in range(num_edges):
        prior = float(trees.prior_E[first + i])
        policy_PM[row, i] = prior * math.exp(slope * q_PM[row, i] + offset - highest) if prior > 0.0 else 0.0
        total += policy_PM[row, i]
    for i in range(num_edges):
        policy_PM[row, i] /= total
