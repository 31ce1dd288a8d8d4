"""The losses, as pure functions.

Legend: T rounds, N nodes, K colours, D directed edges, B graphs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ranks.workloads.graph_coloring.model import sum_by_graph

CERTAIN = 1.0 - 1e-6
"""Keeps the logarithm finite where both ends of an edge are sure of the same colour."""


def edge_conflicts(prob_TNK: Tensor, edge_index_2D: Tensor) -> Tensor:
    """float[T, D]: -log(1 - p_u . p_v), the surprise at seeing edge (u, v) properly coloured.

    The unsupervised constraint loss of RUN-CSP (Toenshoff et al. 2021, arXiv 1909.08387, equation 4). It needs no
    reference colouring, so none of the K! equal ones is preferred.
    """
    source_D, target_D = edge_index_2D
    flat_NR = prob_TNK.permute(1, 0, 2).reshape(prob_TNK.shape[1], -1)
    same_DTK = flat_NR[source_D] * flat_NR[target_D]
    same_DT = same_DTK.view(len(source_D), len(prob_TNK), -1).sum(-1)
    return -torch.log1p(-CERTAIN * same_DT).T


def round_weights(num_rounds: int, discount: float, like: Tensor) -> Tensor:
    """float[T], adding up to 1: discount^(T - 1 - t), so that late rounds count most."""
    age_T = torch.arange(num_rounds - 1, -1, -1, dtype=like.dtype, device=like.device)
    weight_T = discount**age_T
    return weight_T / weight_T.sum()


def conflict_surprise(logits_TNK: Tensor, edge_index_2D: Tensor, node_graph_N: Tensor, num_graphs: int) -> Tensor:
    """float[T, B]: the sum over a graph's undirected edges of `edge_conflicts`, after each round; 0 without edges."""
    conflict_TD = edge_conflicts(logits_TNK.softmax(-1), edge_index_2D)
    return sum_by_graph(conflict_TD.T, node_graph_N[edge_index_2D[1]], num_graphs).T / 2


def soft_conflict(surprise_TB: Tensor, discount: float, forgiven: float) -> Tensor:
    """float[B]: log(1 + surprise / forgiven), averaged over rounds.

    The logarithm turns the gradient towards graphs that are nearly solved: from a sum far above `forgiven`, which a
    graph that has no proper colouring keeps for ever, little is to be gained. Each graph is normalised by itself.
    """
    weight_T = round_weights(len(surprise_TB), discount, surprise_TB)
    return (weight_T[:, None] * torch.log1p(surprise_TB / forgiven)).sum(0)


def censored_chromatic(chromatic_B: Tensor, low_B: Tensor, high_B: Tensor) -> Tensor:
    """float[B]: Huber loss of the distance to the interval [low, high] the chromatic number is known to lie in.

    Where it is known exactly (low = high) this is the plain Huber loss.
    """
    outside_B = (low_B - chromatic_B).clamp(min=0) + (chromatic_B - high_B).clamp(min=0)
    return torch.where(outside_B < 1, 0.5 * outside_B.square(), outside_B - 0.5)
