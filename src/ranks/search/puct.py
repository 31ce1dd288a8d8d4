"""Which edge of a node to follow: PUCT, as in AlphaZero.

    score(a) = Q(a) + U(a)        U(a) = P(a) * sqrt(N) / (1 + N(a)) * (c_init + log((N + c_base + 1) / c_base))

N counts the node's own evaluation and the visits N(a) of its moves. Q(a) is the mean value for the side that moves;
where N(a) = 0 it is the first-play urgency (Silver et al. 2018, arXiv 1712.01815, and its pseudocode). Equal scores go
to the higher prior, then to the move that the game gives first.
"""

from __future__ import annotations

import math

import numpy as np

from ranks.jit import inlined
from ranks.search.trees import NONE, SearchParams, Trees, int64, mean_value


@inlined
def select_edge_puct(trees: Trees, params: SearchParams, node: int, node_visits: int) -> int:
    """The edge of an evaluated node with the highest Q + U."""
    first = int64(trees.nodes_N[node].first_edge)
    total = float(node_visits)
    explore = math.sqrt(total) * (params.c_init + math.log((total + params.c_base + 1.0) / params.c_base))
    best, best_score = int64(NONE), -np.inf
    value_sum, visited_prior = float(trees.nodes_N[node].value), 0.0
    num_visited = int64(0)
    # Score the visited edges. They come first; the first edge without visits ends the scan.
    for edge in range(first, first + trees.nodes_N[node].num_initialized):
        visits = trees.edges_E[edge].visits
        if visits == 0:
            break
        num_visited += 1
        prior = float(trees.prior_E[edge])
        value_sum += trees.edges_E[edge].value_sum
        visited_prior += prior
        score = mean_value(trees, edge) + explore * prior / (1.0 + visits)
        if score > best_score:
            best, best_score = edge, score
    # Of the edges without visits only the one with the highest prior can win: they all have the same Q, the first-play
    # urgency. It is the mean value of the node, less a reduction that grows with the prior mass already visited.
    unvisited = first_unvisited_edge(trees, node, num_visited)
    if unvisited != NONE:
        urgency = value_sum / total - params.fpu_reduction * math.sqrt(visited_prior)
        if urgency + explore * float(trees.prior_E[unvisited]) > best_score:
            best = unvisited
    return best


@inlined
def first_unvisited_edge(trees: Trees, node: int, num_visited: int) -> int:
    """The edge without visits that has the highest prior, or NONE. The visited ones are the first `num_visited`."""
    if num_visited == trees.nodes_N[node].num_edges:
        return int64(NONE)
    if num_visited == trees.nodes_N[node].num_initialized:
        sort_next_edge(trees, node)
    return trees.nodes_N[node].first_edge + num_visited


@inlined
def sort_next_edge(trees: Trees, node: int) -> None:
    """One step of an insertion sort by prior: find the highest prior that is not in place and initialize its edge.

    The other edges keep their order, so equal priors stay in the order in which the game gives the moves.
    """
    start = trees.nodes_N[node].first_edge + trees.nodes_N[node].num_initialized
    end = trees.nodes_N[node].first_edge + trees.nodes_N[node].num_edges
    best = start
    for edge in range(start + 1, end):
        if trees.prior_E[edge] > trees.prior_E[best]:
            best = edge
    prior, move = trees.prior_E[best], trees.move_E[best]
    for edge in range(best, start, -1):
        trees.prior_E[edge] = trees.prior_E[edge - 1]
        trees.move_E[edge] = trees.move_E[edge - 1]
    trees.prior_E[start], trees.move_E[start] = prior, move
    initialize_edge(trees, start)
    trees.nodes_N[node].num_initialized += 1


@inlined
def initialize_edge(trees: Trees, edge: int) -> None:
    """Statistics of an edge without visits."""
    trees.edges_E[edge].visits = 0
    trees.edges_E[edge].value_sum = 0.0
    trees.edges_E[edge].child = NONE
