"""Which move of a node to follow: PUCT, as AlphaZero has it.

    score(a) = Q(a) + U(a)        U(a) = P(a) * sqrt(N) / (1 + N(a)) * (c_init + log((N + c_base + 1) / c_base))

N counts the node's own evaluation and the visits N(a) of its moves; Q(a) is the mean value for the side that moves, and
first-play urgency where N(a) = 0 (Silver et al. 2018, arXiv 1712.01815, and its pseudocode). Equal scores go to the
higher prior, then to the move that the game gives first.
"""

from __future__ import annotations

import math

import numpy as np

from ranks.jit import part
from ranks.search.arena import NONE, Arena, Rules, wide


@part
def order_next(arena: Arena, node: int) -> None:
    """Bring the highest prior that is not in order yet to its place, the others keeping theirs; make its edge ready."""
    start = arena.nodes_N[node].first_edge + arena.nodes_N[node].num_ready
    end = arena.nodes_N[node].first_edge + arena.nodes_N[node].num_edges
    best = start
    for edge in range(start + 1, end):
        if arena.prior_E[edge] > arena.prior_E[best]:
            best = edge
    prior, move = arena.prior_E[best], arena.move_E[best]
    for edge in range(best, start, -1):
        arena.prior_E[edge] = arena.prior_E[edge - 1]
        arena.move_E[edge] = arena.move_E[edge - 1]
    arena.prior_E[start], arena.move_E[start] = prior, move
    make_ready(arena, start)
    arena.nodes_N[node].num_ready += 1


@part
def make_ready(arena: Arena, edge: int) -> None:
    arena.edges_E[edge].visits = 0
    arena.edges_E[edge].value_sum = 0.0
    arena.edges_E[edge].child = NONE


@part
def first_unvisited(arena: Arena, node: int, num_visited: int) -> int:
    """The edge without visits that has the highest prior, or NONE. The visited ones are the first `num_visited`."""
    if num_visited == arena.nodes_N[node].num_edges:
        return wide(NONE)
    if num_visited == arena.nodes_N[node].num_ready:
        order_next(arena, node)
    return arena.nodes_N[node].first_edge + num_visited


@part
def choose_by_puct(arena: Arena, rules: Rules, node: int, node_visits: int) -> int:
    """The edge to follow from an evaluated node."""
    first = wide(arena.nodes_N[node].first_edge)
    total = float(node_visits)
    explore = math.sqrt(total) * (rules.c_init + math.log((total + rules.c_base + 1.0) / rules.c_base))
    best, best_score = wide(NONE), -np.inf
    value_sum, visited_prior = float(arena.nodes_N[node].value), 0.0
    num_visited = wide(0)
    for edge in range(first, first + arena.nodes_N[node].num_ready):
        visits = arena.edges_E[edge].visits
        if visits == 0:
            break
        num_visited += 1
        prior = float(arena.prior_E[edge])
        value_sum += arena.edges_E[edge].value_sum
        visited_prior += prior
        score = arena.edges_E[edge].value_sum / visits + explore * prior / (1.0 + visits)
        if score > best_score:
            best, best_score = edge, score
    fresh = first_unvisited(arena, node, num_visited)
    if fresh != NONE:
        urgency = value_sum / total - rules.fpu_reduction * math.sqrt(visited_prior)
        if urgency + explore * float(arena.prior_E[fresh]) > best_score:
            best = fresh
    return best
