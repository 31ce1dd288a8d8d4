"""The losses, as pure functions. Each returns one value per graph, so the caller sums and counts.

Legend: T rounds, R rows (one for each node and colour), N nodes, E undirected edges,
P edges x colours, B graphs, C types.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from ranks.workloads.graph_coloring.config import TaskWeights
from ranks.workloads.graph_coloring.net.batch import BatchLabels, GraphBatch
from ranks.workloads.graph_coloring.net.model import GraphEncoding
from ranks.workloads.graph_coloring.net.rows import Rows, edge_rows
from ranks.workloads.graph_coloring.net.sums import group_sums, sum_by_graph, sum_rows

MAX_PROBABILITY = 1.0 - 1e-6
"""The largest probability of equal colours in `edge_nll`; with 1 the loss would be infinite."""


def colour_probabilities(logits_TR: Tensor, rows: Rows) -> Tensor:
    """float[R, T]: the softmax over the colours of each node.

    The logits are bounded, so the softmax does not subtract their maximum.
    """
    weight_RT = torch.exp(logits_TR.T)
    return weight_RT / sum_rows(sum_rows(weight_RT, rows.by_node), rows.by_node.transposed)


def edge_nll(same: Tensor) -> Tensor:
    """-log(1 - same): the negative log-likelihood that an edge is properly coloured, in nats.

    `same`: the probability that both ends have the same colour. This is the unsupervised constraint
    loss of RUN-CSP (Tönshoff et al. 2021, arXiv 1909.08387, equation 4). It needs no reference
    colouring, so it prefers none of the K! equivalent ones.
    """
    return -torch.log1p(-MAX_PROBABILITY * same)


def conflict_nll(prob_RT: Tensor, batch: GraphBatch, rows: Rows) -> Tensor:
    """float[T, B]: `edge_nll` summed over each graph's edges, after each round; 0 without edges."""
    u_P, v_P, by_edge = edge_rows(batch, rows)
    same_ET = sum_rows(prob_RT[u_P] * prob_RT[v_P], by_edge)
    return sum_by_graph(edge_nll(same_ET), batch.node_graph_N[batch.edges_2E[0]], len(batch)).T


def round_weights(num_rounds: int, discount: float, like: Tensor) -> Tensor:
    """float[T]: discount^(T - 1 - t), normalised to sum 1; the last round has the largest weight."""
    rounds_left_T = torch.arange(num_rounds - 1, -1, -1, dtype=like.dtype, device=like.device)
    weight_T = discount**rounds_left_T
    return weight_T / weight_T.sum()


def soft_conflict(nll_TB: Tensor, discount: float, softening: float) -> Tensor:
    """float[B]: log(1 + nll / softening), averaged over rounds with `round_weights`.

    The logarithm gives nearly solved graphs the larger gradients. A graph without a proper
    colouring keeps a negative log-likelihood far above `softening`, so its gradient stays small.
    """
    weight_T = round_weights(len(nll_TB), discount, nll_TB)
    return (weight_T[:, None] * torch.log1p(nll_TB / softening)).sum(0)


def reference_cross_entropy(
    prob_RT: Tensor, reference_N: Tensor, batch: GraphBatch, rows: Rows, discount: float
) -> Tensor:
    """float[B]: cross-entropy with the stored colouring, mean over nodes. For the ablation only.

    The target is ill-posed: each graph has K! equivalent colourings, and this loss accepts only
    one.
    """
    coloured_N = rows.colours_N > 0
    row_N = (rows.ptr_N[:-1] + reference_N.clamp(max=rows.colours_N - 1).clamp(min=0)).clamp(max=batch.num_rows - 1)
    nll_NT = -torch.log(prob_RT[row_N].clamp(min=1e-9)) * coloured_N[:, None]
    nll_BT = sum_rows(nll_NT, group_sums(batch.node_graph_N, batch.ptr)) / batch.ptr.diff()[:, None]
    return (nll_BT * round_weights(prob_RT.shape[1], discount, nll_BT)).sum(1)


def huber(error: Tensor) -> Tensor:
    """error^2 / 2 for errors up to 1, linear above (Huber 1964)."""
    size = error.abs()
    return torch.where(size < 1, 0.5 * size.square(), size - 0.5)


def chromatic_loss(chromatic_B: Tensor, low_B: Tensor, high_B: Tensor) -> Tensor:
    """float[B]: Huber loss of the distance to the interval [low, high] of the chromatic number.

    If the number is known (low = high), this is the usual Huber loss.
    """
    return huber((low_B - chromatic_B).clamp(min=0) + (chromatic_B - high_B).clamp(min=0))


def type_cross_entropy(logits_BC: Tensor, type_B: Tensor) -> Tensor:
    """float[B]: cross-entropy of the family, 0 if unknown; by a gather (deterministic on CUDA)."""
    nll_B = -F.log_softmax(logits_BC, -1).gather(1, type_B[:, None].clamp(min=0))[:, 0]
    return nll_B * (type_B >= 0)


def difficulty_loss(difficulty_B: Tensor, measured_B: Tensor) -> Tensor:
    """float[B]: Huber loss of the difficulty; 0 if it was not measured (NaN)."""
    known_B = ~measured_B.isnan()
    return huber(torch.where(known_B, difficulty_B - measured_B.nan_to_num(), torch.zeros_like(difficulty_B)))


def encoder_losses(encoding: GraphEncoding, labels: BatchLabels) -> dict[str, Tensor]:
    """The losses float[B] of the encoder's tasks: chromatic, type, difficulty."""
    return {
        "chromatic": chromatic_loss(encoding.chromatic_B, labels.low_B, labels.high_B),
        "type": type_cross_entropy(encoding.type_logits_BT, labels.type_B),
        "difficulty": difficulty_loss(encoding.difficulty_B, labels.difficulty_B),
    }


def weighted_sum(colours_B: Tensor, others: Mapping[str, Tensor], weights: TaskWeights) -> Tensor:
    """float[B]: the sum of all task losses, each multiplied by its weight."""
    total_B = weights.colours * colours_B
    for name, loss_B in others.items():
        total_B = total_B + getattr(weights, name) * loss_B
    return total_B
