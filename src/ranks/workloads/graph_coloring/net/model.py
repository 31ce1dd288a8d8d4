"""The network: an encoder of graphs and a recurrent layer that colours them. It imports only torch.

    node features  -> GraphEncoder (one state per node) -> chromatic number, type, difficulty
                            |
                            v  node states
    random numbers -> RecurrentLayer (one state per node and colour) -> colour logits

Both use the same weights in every round, for every node and for every colour. So the network runs
for any number of rounds and any K, and it is equivariant: a permutation of the nodes or of the
colours permutes its output in the same way. Random numbers for each node and colour break the
symmetry between equivalent nodes (Li et al. 2022, arXiv 2208.06975). The
encoder does not see the colouring, but the losses of both parts train it. No label is an input.

Under autocast the linear layers run in the lower precision. States, sums and logits keep the dtype
of the inputs.

Legend: N nodes, R rows (one for each node and allowed colour), D directed edges, B graphs,
K colours, T rounds, F features, H width of the encoder, W width of the recurrent layer, V = 2W.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

NUM_FEATURES = 4
"""The features of a node are raw counts: degree, core number, triangles, size of a clique found
that contains it."""
Aggregation = Callable[[Tensor], Tensor]
"""Sums, means, maxima or copies of rows."""


@dataclass(frozen=True)
class NodeLayout:
    """The operations between nodes and graphs. Each form of a batch defines its own."""

    aggregate: Aggregation
    """[N, F] -> [N, F]: the sum over the neighbours of each node."""
    to_graphs: Aggregation
    """[N, F] -> [B, F]: the sum over the nodes of each graph."""
    largest: Aggregation
    """[N, F] -> [B, F]: the maximum over the nodes of each graph."""
    to_nodes: Aggregation
    """[B, F] -> [N, F]: a copy of the graph's row for each of its nodes."""


@dataclass(frozen=True)
class RowLayout:
    """The operations between rows and nodes. Each form of a batch defines its own."""

    aggregate: Aggregation
    """[R, F] -> [R, F]: the sum over the neighbours' rows of the same colour."""
    to_nodes: Aggregation
    """[R, F] -> [N, F]: the mean over the colours of each node."""
    to_rows: Aggregation
    """[N, F] -> [R, F]: a copy of the node's row for each of its colours."""


@dataclass(frozen=True)
class GraphEncoding:
    """The output of the encoder."""

    node_NH: Tensor
    """The state of each node."""
    scale_N1: Tensor
    """1 / sqrt(degree) of each node, at most 1; it multiplies the aggregated messages."""
    chromatic_B: Tensor
    """The estimated chromatic number, at least the size of the largest clique found."""
    type_logits_BT: Tensor
    difficulty_B: Tensor
    """The estimated log10(1 + TabuCol moves)."""


class RecurrentLayer(nn.Module):
    """A gated recurrent unit (Cho et al. 2014) without reset gate; the neighbours' messages are its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.message = nn.Linear(width, width)
        self.from_self = nn.Linear(width, 2 * width)
        self.from_neighbours = nn.Linear(width, 2 * width, bias=False)
        self.from_pooled = nn.Linear(width, 2 * width, bias=False)

    def forward(self, state: Tensor, aggregate: Aggregation, scale: Tensor, pooled: Tensor) -> Tensor:
        """The next state.

        `scale` multiplies the aggregated messages. `pooled` [..., 2 * width] is an additional input
        that all nodes of a graph (or all colours of a node) share.
        """
        messages = aggregate(F.silu(self.message(state))) * scale
        mixed = self.from_self(state) + self.from_neighbours(messages) + pooled
        keep, new = mixed.to(state.dtype).chunk(2, -1)
        return torch.lerp(torch.tanh(new), state, torch.sigmoid(keep))


class GraphEncoder(nn.Module):
    """Message passing over nodes, then three predictions for each graph."""

    def __init__(self, width: int, rounds: int, num_types: int) -> None:
        super().__init__()
        self.rounds, self.num_types = rounds, num_types
        self.embed = nn.Linear(NUM_FEATURES + 3, width)
        self.layer = RecurrentLayer(width)
        self.attention = nn.Linear(width, 1, bias=False)
        self.hidden = nn.Linear(2 * width + 4, width)
        self.heads = nn.Linear(width, 2 + num_types)

    def forward(self, features_NF: Tensor, layout: NodeLayout) -> GraphEncoding:
        """`features_NF`: float[N, NUM_FEATURES], raw counts."""
        degree_N1, triangles_N1 = features_NF[:, :1], features_NF[:, 2:3]
        num_nodes_B1 = layout.to_graphs(torch.ones_like(degree_N1))
        num_nodes_N1 = layout.to_nodes(num_nodes_B1)
        clustering_N1 = 2 * triangles_N1 / (degree_N1 * (degree_N1 - 1)).clamp(min=1)
        density_N1 = degree_N1 / (num_nodes_N1 - 1).clamp(min=1)
        inputs_NF = torch.cat([torch.log1p(features_NF), clustering_N1, density_N1, num_nodes_N1.log()], 1)
        scale_N1 = degree_N1.clamp(min=1).rsqrt()
        state_NH = torch.tanh(self.embed(inputs_NF)).to(features_NF.dtype)
        for _ in range(self.rounds):
            pooled_BV = self.layer.from_pooled(layout.to_graphs(state_NH) / num_nodes_B1)
            state_NH = self.layer(state_NH, layout.aggregate, scale_N1, layout.to_nodes(pooled_BV))
        clique_B1 = layout.largest(features_NF[:, 3:4])
        hidden_BH = F.silu(self.hidden(self._summary(state_NH, degree_N1, num_nodes_B1, clique_B1, layout)))
        heads_BO = self.heads(hidden_BH).to(features_NF.dtype)
        chromatic_B = clique_B1[:, 0] + F.softplus(heads_BO[:, 0])
        return GraphEncoding(state_NH, scale_N1, chromatic_B, heads_BO[:, 2:], heads_BO[:, 1])

    def _summary(
        self, state_NH: Tensor, degree_N1: Tensor, num_nodes_B1: Tensor, clique_B1: Tensor, layout: NodeLayout
    ) -> Tensor:
        """The mean and an attention-weighted mean of the node states, and the size of the graph.

        States are between -1 and 1, so the softmax does not subtract their maximum.
        """
        weight_N1 = torch.exp(self.attention(state_NH))
        attended_BH = layout.to_graphs(weight_N1 * state_NH) / layout.to_graphs(weight_N1)
        degree_B1 = layout.to_graphs(degree_N1) / num_nodes_B1
        density_B1 = degree_B1 / (num_nodes_B1 - 1).clamp(min=1)
        sizes_BF = torch.cat([num_nodes_B1.log(), torch.log1p(degree_B1), density_B1, clique_B1.log()], 1)
        return torch.cat([layout.to_graphs(state_NH) / num_nodes_B1, attended_BH, sizes_BF], 1)


class ColouringNet(nn.Module):
    """Encodes graphs and colours them.

    In evaluation mode the messages of the recurrent layer are multiplied by `damping`. Training
    makes the states converge. With weaker messages they converge less, so the search continues and
    finds more proper colourings. `layers`: with 1, all rounds share the same weights; with more,
    the rounds use the layers in turn.
    """

    def __init__(
        self,
        width: int = 32,
        rounds: int = 16,
        damping: float = 0.85,
        encoder_width: int = 64,
        encoder_rounds: int = 6,
        num_types: int = 9,
        layers: int = 1,
    ) -> None:
        super().__init__()
        self.width, self.rounds, self.damping = width, rounds, damping
        self.encoder_width, self.encoder_rounds = encoder_width, encoder_rounds
        self.num_types, self.layers = num_types, layers
        self.encoder = GraphEncoder(encoder_width, encoder_rounds, num_types)
        self.embed = nn.Linear(1, width)
        self.from_encoder = nn.Linear(encoder_width, 2 * width, bias=False)
        self.colour_layers = nn.ModuleList(RecurrentLayer(width) for _ in range(layers))
        self.colour_head = nn.Linear(width, 1, bias=False)

    def initial_state(self, noise_R: Tensor) -> Tensor:
        """The states float[R, W] before the first round, from standard normal numbers."""
        return torch.tanh(self.embed(noise_R[:, None])).to(noise_R.dtype)

    def colour(
        self, state_RW: Tensor, context_NV: Tensor, scale_R1: Tensor, layout: RowLayout, rounds: int, first: int = 0
    ) -> tuple[Tensor, Tensor]:
        """The logits float[T, R] after each of `rounds` rounds, and the last states float[R, W].

        `context_NV`: the encoder's input to each node, `from_encoder(node_NH)`. `scale_R1`: the
        encoder's scale for each row. `first`: the number of the first round, from 0; it selects the
        layer.
        """
        scale_R1 = scale_R1 * (1.0 if self.training else self.damping)
        logits: list[Tensor] = []
        for t in range(first, first + rounds):
            layer = self.colour_layers[t % self.layers]
            assert isinstance(layer, RecurrentLayer)
            pooled_NV = layer.from_pooled(layout.to_nodes(state_RW))
            state_RW = layer(state_RW, layout.aggregate, scale_R1, layout.to_rows(pooled_NV + context_NV))
            logits.append(self.colour_head(state_RW)[:, 0].to(state_RW.dtype))
        return torch.stack(logits), state_RW

    def forward(
        self, node_features: Tensor, edge_index: Tensor, batch: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The form of the network that is exported to ONNX; all graphs have the same number of
        colours.

        `node_features`: float[N, NUM_FEATURES + K], raw counts, then standard normal noise for each
        colour. `edge_index`: int64[2, D], both directions, in any order. `batch`: int64[N], the
        graph of each node, non-decreasing. Returns colour logits [N, K] after `rounds` rounds,
        chromatic number [B], type logits [B, types], difficulty [B].

        It uses only operations that ONNX Runtime computes correctly, and that the exporter of torch 2.11
        can trace: `item` and `split`, not `int` of a tensor, nor a slice of the free number of columns.
        """
        source_D, target_D = edge_index
        num_nodes, num_colours = node_features.shape[0], node_features.shape[1] - NUM_FEATURES
        features_NF, noise_NK = node_features.split([NUM_FEATURES, num_colours], 1)
        num_graphs = cast(int, batch.max().item()) + 1

        def aggregate(x_NF: Tensor) -> Tensor:
            # An additional edge to a row that is cut off: onnxruntime rejects a scatter of zero
            # rows.
            index_D = torch.cat([target_D, target_D.new_full((1,), num_nodes)])
            sent_DF = F.pad(x_NF[source_D], (0, 0, 0, 1))
            padded = x_NF.new_zeros(num_nodes + 1, x_NF.shape[1])
            return padded.scatter_add(0, index_D[:, None].expand(-1, x_NF.shape[1]), sent_DF)[:-1]

        def to_graphs(x_NF: Tensor) -> Tensor:
            index = batch[:, None].expand(-1, x_NF.shape[1])
            return x_NF.new_zeros(num_graphs, x_NF.shape[1]).scatter_add(0, index, x_NF)

        def largest(x_N1: Tensor) -> Tensor:
            return x_N1.new_full((num_graphs, 1), -1e9).scatter_reduce(0, batch[:, None], x_N1, "amax")

        def aggregate_rows(x_RF: Tensor) -> Tensor:
            return aggregate(x_RF.reshape(num_nodes, -1)).reshape(x_RF.shape)

        def over_colours(x_RF: Tensor) -> Tensor:
            return x_RF.reshape(num_nodes, num_colours, -1).mean(1)

        def to_rows(x_NF: Tensor) -> Tensor:
            return x_NF[:, None].expand(-1, num_colours, -1).reshape(-1, x_NF.shape[1])

        nodes = NodeLayout(aggregate, to_graphs, largest, lambda x_BF: x_BF[batch])
        encoding = self.encoder(features_NF, nodes)
        logits_TR, _ = self.colour(
            self.initial_state(noise_NK.reshape(-1)),
            self.from_encoder(encoding.node_NH),
            to_rows(encoding.scale_N1),
            RowLayout(aggregate_rows, over_colours, to_rows),
            self.rounds,
        )
        logits_NK = logits_TR[-1].reshape(num_nodes, num_colours)
        return logits_NK, encoding.chromatic_B, encoding.type_logits_BT, encoding.difficulty_B
