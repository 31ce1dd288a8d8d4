"""The net of graph-coloring with the message passing of torch-geometric: same weights, batches and
loss.

The layers between the sums (linear maps, gates) are the same code. Only gathering and summing over
nodes, rows and edges differ.
"""

# N nodes, R rows (one for each node and colour), B graphs, M directed edges x colours, P edges x
# colours, F features

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing, global_add_pool, global_max_pool
from torch_geometric.utils import scatter, softmax

from ranks.workloads.graph_coloring.config import LossSettings
from ranks.workloads.graph_coloring.net.batch import GraphBatch
from ranks.workloads.graph_coloring.net.losses import edge_nll, encoder_losses, soft_conflict, weighted_sum
from ranks.workloads.graph_coloring.net.model import ColouringNet, NodeLayout, RowLayout


class Neighbours(MessagePassing):
    """The sum over neighbours."""

    def __init__(self) -> None:
        super().__init__(aggr="add")

    def forward(self, x_NF: Tensor, edge_index_2D: Tensor) -> Tensor:
        return self.propagate(edge_index_2D, x=x_NF)


def row_graph(batch: GraphBatch) -> tuple[Tensor, Tensor]:
    """(the node of each row int64[R], edges between rows of the same colour int64[2, M])."""
    colours_N = batch.num_colours_B[batch.node_graph_N]
    first_N = colours_N.cumsum(0) - colours_N
    node_R = torch.repeat_interleave(colours_N)
    source_D, target_D = batch.edge_index_2D
    edge_M = torch.repeat_interleave(colours_N[target_D])
    start_D = colours_N[target_D].cumsum(0) - colours_N[target_D]
    colour_M = torch.arange(len(edge_M)) - start_D[edge_M]
    return node_R, torch.stack([first_N[source_D[edge_M]] + colour_M, first_N[target_D[edge_M]] + colour_M])


def loss(model: ColouringNet, batch: GraphBatch, noise_R: Tensor, settings: LossSettings, burn_in: int) -> Tensor:
    """The same loss as `training.coloring_loss`, summed over the graphs of a batch."""
    assert batch.labels is not None
    sum_over_neighbours, group = Neighbours(), batch.node_graph_N
    node_R, rows_2M = row_graph(batch)
    nodes = NodeLayout(
        aggregate=lambda x: sum_over_neighbours(x, batch.edge_index_2D),
        to_graphs=lambda x: global_add_pool(x, group, len(batch)),
        largest=lambda x: global_max_pool(x, group, len(batch)),
        to_nodes=lambda x: x[group],
    )
    encoding = model.encoder(batch.features_NF, nodes)
    rows = RowLayout(
        aggregate=lambda x: sum_over_neighbours(x, rows_2M),
        to_nodes=lambda x: scatter(x, node_R, dim_size=len(group), reduce="mean"),
        to_rows=lambda x: x[node_R],
    )
    context_NV, scale_R1 = model.from_encoder(encoding.node_NH), encoding.scale_N1[node_R]
    state_RW = model.initial_state(noise_R)
    if burn_in:
        with torch.no_grad():
            _, state_RW = model.colour(state_RW, context_NV, scale_R1, rows, burn_in)
    logits_TR, _ = model.colour(state_RW, context_NV, scale_R1, rows, settings.rounds, burn_in)
    prob_RT = softmax(logits_TR.T, node_R, num_nodes=len(group))
    pairs_2P = rows_2M[:, rows_2M[0] < rows_2M[1]]
    edge_P = edge_of(batch)
    same_ET = scatter(prob_RT[pairs_2P[0]] * prob_RT[pairs_2P[1]], edge_P, reduce="sum")
    graph_E = batch.node_graph_N[batch.edge_index_2D[1][batch.edge_index_2D[0] < batch.edge_index_2D[1]]]
    nll_TB = scatter(edge_nll(same_ET), graph_E, dim_size=len(batch), reduce="sum").T
    conflict_B = soft_conflict(nll_TB, settings.discount, settings.softening)
    return weighted_sum(conflict_B, encoder_losses(encoding, batch.labels), settings.weights).sum()


def edge_of(batch: GraphBatch) -> Tensor:
    """int64[P]: the undirected edge of each pair of rows, for edges in the order of their higher
    end."""
    source_D, target_D = batch.edge_index_2D
    colours_E = batch.num_colours_B[batch.node_graph_N[target_D[source_D < target_D]]]
    return torch.repeat_interleave(colours_E)
