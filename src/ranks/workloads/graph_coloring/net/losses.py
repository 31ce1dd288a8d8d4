"""The losses, as pure functions.

Legend: T rounds, R rows (one for each node and colour), N nodes, E undirected edges, P edges x colours, B graphs,
C types.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from ranks.workloads.graph_coloring.config import TaskWeights
from ranks.workloads.graph_coloring.net.batch import GraphBatch, Labels
from ranks.workloads.graph_coloring.net.model import Reading
from ranks.workloads.graph_coloring.net.rows import Rows, edge_rows
from ranks.workloads.graph_coloring.net.sums import group_sums, sum_rows

CERTAIN = 1.0 - 1e-6
"""Keeps the logarithm finite where both ends of an edge are sure of the same colour."""


def colour_probabilities(logits_TR: Tensor, rows: Rows) -> Tensor:
    """float[R, T]: the softmax over each node's colours. The net's logits are bounded, so no maximum is taken off."""
    weight_RT = torch.exp(logits_TR.T)
    return weight_RT / sum_rows(sum_rows(weight_RT, rows.by_node), rows.by_node.transposed)


def edge_surprise(same: Tensor) -> Tensor:
    """-log(1 - same), the surprise at seeing an edge properly coloured whose ends are equal with probability `same`.

    The unsupervised constraint loss of RUN-CSP (Toenshoff et al. 2021, arXiv 1909.08387, equation 4). It needs no
    reference colouring, so none of the K! equal ones is preferred.
    """
    return -torch.log1p(-CERTAIN * same)


def conflict_surprise(prob_RT: Tensor, batch: GraphBatch, rows: Rows) -> Tensor:
    """float[T, B]: the sum of `edge_surprise` over a graph's undirected edges, after each round; 0 without edges."""
    u_P, v_P, by_edge = edge_rows(batch, rows)
    same_ET = sum_rows(prob_RT[u_P] * prob_RT[v_P], by_edge)
    by_graph = group_sums(batch.node_graph_N[batch.edges_2E[0]], len(batch))
    return sum_rows(edge_surprise(same_ET), by_graph).T


def round_weights(num_rounds: int, discount: float, like: Tensor) -> Tensor:
    """float[T], adding up to 1: discount^(T - 1 - t), so that late rounds count most."""
    age_T = torch.arange(num_rounds - 1, -1, -1, dtype=like.dtype, device=like.device)
    weight_T = discount**age_T
    return weight_T / weight_T.sum()


def soft_conflict(surprise_TB: Tensor, discount: float, forgiven: float) -> Tensor:
    """float[B]: log(1 + surprise / forgiven), averaged over rounds.

    The logarithm turns the gradient towards graphs that are nearly solved: from a sum far above `forgiven`, which a
    graph that has no proper colouring keeps for ever, little is to be gained. Each graph is normalised by itself.
    """
    weight_T = round_weights(len(surprise_TB), discount, surprise_TB)
    return (weight_T[:, None] * torch.log1p(surprise_TB / forgiven)).sum(0)


def one_colouring(prob_RT: Tensor, reference_N: Tensor, batch: GraphBatch, rows: Rows, discount: float) -> Tensor:
    """float[B]: cross-entropy against one reference colouring, mean over nodes; ill-posed, kept for the ablation.

    Each graph has K! equal references; this prefers the one that happens to be stored.
    """
    coloured_N = rows.colours_N > 0
    row_N = (rows.ptr_N[:-1] + reference_N.clamp(max=rows.colours_N - 1).clamp(min=0)).clamp(max=batch.num_rows - 1)
    nats_NT = -torch.log(prob_RT[row_N].clamp(min=1e-9)) * coloured_N[:, None]
    nats_BT = sum_rows(nats_NT, group_sums(batch.node_graph_N, len(batch))) / batch.ptr.diff()[:, None]
    return (nats_BT * round_weights(prob_RT.shape[1], discount, nats_BT)).sum(1)


def huber(error: Tensor) -> Tensor:
    """Half the square up to 1, then linear (Huber 1964)."""
    size = error.abs()
    return torch.where(size < 1, 0.5 * size.square(), size - 0.5)


def censored_chromatic(chromatic_B: Tensor, low_B: Tensor, high_B: Tensor) -> Tensor:
    """float[B]: Huber loss of the distance to the interval [low, high] the chromatic number is known to lie in.

    Where it is known exactly (low = high) this is the plain Huber loss.
    """
    return huber((low_B - chromatic_B).clamp(min=0) + (chromatic_B - high_B).clamp(min=0))


def type_surprise(logits_BC: Tensor, type_B: Tensor) -> Tensor:
    """float[B]: cross-entropy of the family, by a gather (deterministic on CUDA too); 0 where it is not known."""
    nats_B = -F.log_softmax(logits_BC, -1).gather(1, type_B[:, None].clamp(min=0))[:, 0]
    return nats_B * (type_B >= 0)


def measured_difficulty(difficulty_B: Tensor, measured_B: Tensor) -> Tensor:
    """float[B]: Huber loss; 0 where it was not measured (NaN)."""
    known_B = ~measured_B.isnan()
    return huber(torch.where(known_B, difficulty_B - measured_B.nan_to_num(), torch.zeros_like(difficulty_B)))


def reader_losses(reading: Reading, labels: Labels) -> dict[str, Tensor]:
    """float[B] of each task that the reader has: chromatic, type, difficulty."""
    return {
        "chromatic": censored_chromatic(reading.chromatic_B, labels.low_B, labels.high_B),
        "type": type_surprise(reading.type_logits_BT, labels.type_B),
        "difficulty": measured_difficulty(reading.difficulty_B, labels.difficulty_B),
    }


def weighted(colours_B: Tensor, others: Mapping[str, Tensor], weights: TaskWeights) -> Tensor:
    """float[B]: all tasks together."""
    total_B = weights.colours * colours_B
    for name, loss_B in others.items():
        total_B = total_B + getattr(weights, name) * loss_B
    return total_B
