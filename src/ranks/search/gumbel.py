"""Policy improvement by planning with Gumbel (Danihelka, Guez, Schrittwieser, Silver, ICLR 2022).

    root     sequential halving over the moves with the highest  g(a) + log P(a) + sigma(q(a))
    below    the move with the highest  pi'(a) - N(a) / (1 + sum of N)
    pi'      softmax(log P + sigma(completed q)), the improved policy: what the network learns

Completed q(a) is the mean value where a was visited, else v_mix, a mixture of the node's own value and of the visited
ones (their appendix D). sigma(q) = (c_visit + max N) * c_scale * q with q in [0, 1] (their equation 8).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ranks.jit import part
from ranks.search.arena import NONE, Arena, Rules, wide
from ranks.search.evaluation import Doubles
from ranks.search.puct import first_unvisited

LEAST_PRIOR = 1e-38
"""Keeps v_mix defined where the visited moves have no prior at all."""
LEAST_LOGIT = -1e9


@functools.lru_cache(maxsize=1024)
def considered_visits(num_considered: int, simulations: int) -> tuple[int, ...]:
    """How many visits a move must have to be considered, at each simulation of sequential halving.

    ceil(log2 m) rounds halve the m moves; each shares simulations / ceil(log2 m) among the moves left, at least one
    visit each (Karnin et al. 2013; figure 1 of the paper). What rounding leaves over goes to the last two.
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


@part
def completed_values(arena: Arena, rules: Rules, first: int, end: int, own_value: float) -> tuple[float, float, float]:
    """v_mix, and the line sigma(q) = slope * q + offset, from the visited ones among the edges first to end - 1."""
    total, most, prior_sum, weighted = 0, 0, 0.0, 0.0
    low, high = np.inf, -np.inf
    some_unvisited = False
    for edge in range(first, end):
        visits = arena.edges_E[edge].visits
        if visits == 0:
            some_unvisited = True
            continue
        q = arena.edges_E[edge].value_sum / visits
        prior = max(float(arena.prior_E[edge]), LEAST_PRIOR)
        total += visits
        most = max(most, visits)
        prior_sum += prior
        weighted += prior * q
        low, high = min(low, q), max(high, q)
    mixed = own_value if total == 0 else (own_value + total * weighted / prior_sum) / (total + 1)
    scale = (rules.c_visit + most) * rules.c_scale
    if not rules.rescale_values:
        return mixed, 0.5 * scale, 0.5 * scale
    if some_unvisited:
        low, high = min(low, mixed), max(high, mixed)
    slope = scale / max(high - low, 1e-8)
    return mixed, slope, -low * slope


@part
def choose_below_root(arena: Arena, rules: Rules, node: int, node_visits: int) -> int:
    """The edge whose visits lag most behind the improved policy. Reads the visited edges and the best unvisited one."""
    first = wide(arena.nodes_N[node].first_edge)
    num_visited = wide(0)
    while num_visited < arena.nodes_N[node].num_ready and arena.edges_E[first + num_visited].visits > 0:
        num_visited += 1
    fresh = first_unvisited(arena, node, num_visited)
    end = first + num_visited
    mixed, slope, offset = completed_values(
        arena, rules, first, end if fresh == NONE else end + 1, float(arena.nodes_N[node].value)
    )
    fresh_prior = float(arena.prior_E[fresh]) if fresh != NONE else 0.0
    highest = slope * mixed + offset if fresh_prior > 0.0 else -np.inf
    visited_prior = 0.0
    for edge in range(first, end):
        if arena.prior_E[edge] > 0.0:
            highest = max(highest, slope * (arena.edges_E[edge].value_sum / arena.edges_E[edge].visits) + offset)
        visited_prior += float(arena.prior_E[edge])
    unvisited_weight = math.exp(slope * mixed + offset - highest) if fresh_prior > 0.0 else 0.0
    normaliser = max(1.0 - visited_prior, 0.0) * unvisited_weight
    for edge in range(first, end):
        normaliser += weight(arena, edge, slope, offset - highest)
    best, best_score = wide(NONE), -np.inf
    for edge in range(first, end):
        score = weight(arena, edge, slope, offset - highest) / normaliser - arena.edges_E[edge].visits / float(
            node_visits
        )
        if score > best_score:
            best, best_score = edge, score
    if fresh != NONE and fresh_prior * unvisited_weight / normaliser > best_score:
        best = fresh
    return best


@part
def weight(arena: Arena, edge: int, slope: float, offset: float) -> float:
    """The improved policy of a visited edge, before it is made to sum to one."""
    if arena.prior_E[edge] == 0.0:
        return 0.0
    q = arena.edges_E[edge].value_sum / arena.edges_E[edge].visits
    return float(arena.prior_E[edge]) * math.exp(slope * q + offset)


@part
def choose_at_root(arena: Arena, rules: Rules, slot: int, node: int, considered: int) -> int:
    """The considered edge, that is, one with that many visits of this search, with the highest g + log P + sigma(q).

    With considered = NONE those with the most visits are considered: this is the move to play.
    """
    first = wide(arena.nodes_N[node].first_edge)
    end = first + arena.nodes_N[node].num_edges
    if considered == NONE:
        for edge in range(first, end):
            considered = max(
                considered, arena.edges_E[edge].visits - arena.root_edges_GM[slot, edge - first].visits_before
            )
    mixed, slope, offset = completed_values(arena, rules, first, end, float(arena.nodes_N[node].value))
    best, best_score = wide(NONE), -np.inf
    for edge in range(first, end):
        visits = arena.edges_E[edge].visits
        if visits - arena.root_edges_GM[slot, edge - first].visits_before != considered:
            continue
        q = arena.edges_E[edge].value_sum / visits if visits > 0 else mixed
        score = max(arena.root_edges_GM[slot, edge - first].noise + slope * q + offset, LEAST_LOGIT)
        if score > best_score:
            best, best_score = edge, score
    return best


@part
def improved_policy(arena: Arena, rules: Rules, node: int, policy_PM: Doubles, q_PM: Doubles, row: int) -> None:
    """Write softmax(log P + sigma(completed q)) and completed q of a node whose edges are all ready."""
    first = wide(arena.nodes_N[node].first_edge)
    num_edges = wide(arena.nodes_N[node].num_edges)
    mixed, slope, offset = completed_values(arena, rules, first, first + num_edges, float(arena.nodes_N[node].value))
    highest = -np.inf
    for i in range(num_edges):
        visits = arena.edges_E[first + i].visits
        q_PM[row, i] = arena.edges_E[first + i].value_sum / visits if visits > 0 else mixed
        if arena.prior_E[first + i] > 0.0:
            highest = max(highest, slope * q_PM[row, i] + offset)
    total = 0.0
    for i in range(num_edges):
        prior = float(arena.prior_E[first + i])
        policy_PM[row, i] = prior * math.exp(slope * q_PM[row, i] + offset - highest) if prior > 0.0 else 0.0
        total += policy_PM[row, i]
    for i in range(num_edges):
        policy_PM[row, i] /= total
