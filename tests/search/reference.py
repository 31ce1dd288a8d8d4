"""Reference implementation of the search, for one game: trees of Python objects, every move scored. Slow and simple.

It shares no code with the kernels. Floating-point sums are in the same order, so trees can be compared exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluation, Evaluator, Leaves
from ranks.search.game import Game
from ranks.search.search import Search

MASK = 2**64 - 1


def mix(word: int) -> int:
    """splitmix64 with Python integers."""
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def uniform(key: int, index: int) -> float:
    """Number `index` of a stream, in (0, 1)."""
    return ((mix((key + index * 0x9E3779B97F4A7C15) & MASK) >> 12) + 0.5) * 2.0**-52


def stream_key(seed: int, game_id: int, ply: int, purpose: int) -> int:
    """The key of one stream; purpose 2 is Gumbel noise."""
    return mix(mix(mix(mix(seed) ^ game_id) ^ ply) ^ purpose)


def hash_evaluator(leaves: Leaves) -> Evaluation:
    """Priors and values that are a hash of the position, so that different trees get different numbers."""
    priors_BM = np.zeros(leaves.moves_BM.shape, np.float32)
    value_B = np.zeros(len(priors_BM), np.float32)
    for row, (words, moves, count) in enumerate(zip(*leaves, strict=True)):
        if count > 0:
            key = 0
            for word in words[: min(len(words), 11)]:
                key = mix(key ^ int(word))
            weights = np.array([uniform(key, int(move)) ** 3 + 1e-4 for move in moves[:count]])
            priors_BM[row, :count] = weights / weights.sum()
            value_B[row] = 1.6 * uniform(key, 1 << 20) - 0.8
    return Evaluation(priors_BM, value_B)


@dataclass
class Node:
    state: Any
    keys: list[int]
    moves: list[int]
    outcome: float | None
    value: float = 0.0
    priors: list[float] = field(default_factory=list)
    visits: list[int] = field(default_factory=list)
    sums: list[float] = field(default_factory=list)
    children: dict[int, Node] = field(default_factory=dict)


def new_node(game: Game, state: Any, keys: list[int]) -> Node:
    """A node that is finished, or has its legal moves."""
    moves = np.zeros(game.max_moves, np.uint16)
    count = game.legal_moves(state, 0, np.array([*keys, 0], np.uint64), 0, len(keys), moves, 0)
    return Node(state, keys, [int(move) for move in moves[: max(count, 0)]], {-1: -1.0, -2: 0.0, -3: 1.0}.get(count))


def after(game: Game, node: Node, move: int) -> Node:
    """A new node for the position after a move."""
    state = np.zeros_like(node.state)
    game.play(node.state, 0, state, 0, np.uint16(move))
    return new_node(game, state, [*node.keys, int(node.state[0, game.key_word])])


def evaluate(game: Game, node: Node, evaluator: Evaluator) -> None:
    """Expand a node: normalised priors, moves sorted by prior, value."""
    moves = np.zeros((1, game.max_moves), np.uint16)
    moves[0, : len(node.moves)] = node.moves
    priors, value = evaluator(Leaves(node.state, moves, np.array([len(node.moves)], np.int32)))
    total = sum(float(prior) for prior in priors[0, : len(node.moves)])
    scaled = [float(np.float32(float(prior) * (1.0 / total))) for prior in priors[0, : len(node.moves)]]
    order = sorted(range(len(scaled)), key=lambda i: -scaled[i])
    node.moves, node.priors = [node.moves[i] for i in order], [scaled[i] for i in order]
    node.value, node.visits, node.sums = float(value[0]), [0] * len(order), [0.0] * len(order)


def puct(node: Node, config: SearchConfig) -> int:
    """The index of the move with the highest Q + U."""
    total = 1 + sum(node.visits)
    explore = math.sqrt(total) * (config.c_init + math.log((total + config.c_base + 1) / config.c_base))
    value_sum, visited_prior = node.value, 0.0
    for prior, visits, value in zip(node.priors, node.visits, node.sums, strict=True):
        if visits:
            value_sum, visited_prior = value_sum + value, visited_prior + prior
    urgency = value_sum / total - config.fpu_reduction * math.sqrt(visited_prior)
    scores = [
        (value / visits if visits else urgency) + explore * prior / (1 + visits)
        for prior, visits, value in zip(node.priors, node.visits, node.sums, strict=True)
    ]
    return scores.index(max(scores))


def completed_q(node: Node) -> list[float]:
    """Mean values; v_mix for moves without visits."""
    visited = [i for i, visits in enumerate(node.visits) if visits]
    prior_sum = sum(node.priors[i] for i in visited)
    weighted = sum(node.priors[i] * (node.sums[i] / node.visits[i]) for i in visited)
    total = sum(node.visits)
    mixed = (node.value + total * weighted / prior_sum) / (total + 1) if visited else node.value
    return [s / n if n else mixed for s, n in zip(node.sums, node.visits, strict=True)]


def sigma(node: Node, config: SearchConfig) -> list[float]:
    """sigma(completed q) of each move."""
    q = completed_q(node)
    low, high = (min(q), max(q)) if config.rescale_values else (-1.0, 1.0)
    scale = (config.c_visit + max(node.visits)) * config.c_scale
    return [scale * (value - low) / max(high - low, 1e-8) for value in q]


def improved_policy(node: Node, config: SearchConfig) -> list[float]:
    """softmax(log P + sigma(completed q))."""
    logits = [math.log(p) + s for p, s in zip(node.priors, sigma(node, config), strict=True)]
    weights = [math.exp(logit - max(logits)) for logit in logits]
    return [weight / sum(weights) for weight in weights]


def gumbel_interior(node: Node, config: SearchConfig) -> int:
    """The index of the move with the highest improved policy minus visit share."""
    share = [visits / (1 + sum(node.visits)) for visits in node.visits]
    scores = [pi - n for pi, n in zip(improved_policy(node, config), share, strict=True)]
    return scores.index(max(scores))


def search(
    game: Game, config: SearchConfig, evaluator: Evaluator, simulations: int, moves: list[int], game_id: int = 0
) -> Node:
    """The tree after some simulations from the position after `moves`."""
    root = new_node(game, game.initial[None].copy(), [])
    for move in moves:
        root = after(game, root, move)
    evaluate(game, root, evaluator)
    key = stream_key(config.seed, game_id, len(moves), 2)
    noise = [-math.log(-math.log(uniform(key, move))) * config.gumbel_scale for move in root.moves]
    considered = sequential_halving(min(config.num_considered, len(root.moves)), simulations)
    for simulation in range(simulations):
        node, path = root, []
        while node.outcome is None:
            if config.root == "puct":
                i = puct(node, config)
            elif node is root:
                scores = [
                    g + math.log(p) + s if n == considered[simulation] else -math.inf
                    for g, p, s, n in zip(noise, root.priors, sigma(root, config), root.visits, strict=True)
                ]
                i = scores.index(max(scores))
            else:
                i = gumbel_interior(node, config)
            path.append((node, i))
            if i in node.children:
                node = node.children[i]
                continue
            node.children[i] = after(game, node, node.moves[i])
            node = node.children[i]
            if node.outcome is None:
                evaluate(game, node, evaluator)
                break
        value = node.value if node.outcome is None else node.outcome
        for parent, i in reversed(path):
            value = -value
            parent.visits[i] += 1
            parent.sums[i] += value
    return root


def sequential_halving(num_considered: int, simulations: int) -> list[int]:
    """Visit counts at each simulation, round by round: visit every move that is left `extra` times, then keep half."""
    if num_considered == 1:
        return list(range(simulations))
    rounds = math.ceil(math.log2(num_considered))
    visits = [0] * num_considered
    order: list[int] = []
    left = num_considered
    while len(order) < simulations:
        extra = max(1, int(simulations / (rounds * left)))
        for _ in range(extra):
            for i in range(left):
                order.append(visits[i])
                visits[i] += 1
        left = max(2, left // 2)
    return order[:simulations]


def as_dict(node: Node) -> dict[int, Any]:
    """A tree as nested dictionaries: move -> (prior, visits, sum of values, dictionary of the child)."""
    return {
        node.moves[i]: (node.priors[i], node.visits[i], node.sums[i], as_dict(child) if child.outcome is None else {})
        for i, child in node.children.items()
    }


def searched_tree(search: Search, slot: int, node: int | None = None) -> dict[int, Any]:
    """The tree of a slot of a search in the form of `as_dict`."""
    trees = search.trees
    record = trees.nodes_N[slot * search.sizes.nodes_per_game if node is None else node]
    found: dict[int, Any] = {}
    for edge in range(record["first_edge"], record["first_edge"] + max(record["num_initialized"], 0)):
        entry = trees.edges_E[edge]
        if entry["visits"] > 0:
            below = searched_tree(search, slot, entry["child"])
            assert trees.nodes_N[entry["child"]]["parent_edge"] == edge
            found[int(trees.move_E[edge])] = (
                float(trees.prior_E[edge]), int(entry["visits"]), float(entry["value_sum"]), below
            )  # fmt: skip
    return found
