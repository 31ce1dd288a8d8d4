"""The network: an encoder of graphs and a recurrent layer that colours them. It imports only torch.

    node features  -> GraphEncoder: one state per node, the same weights in every round -> chromatic number, type,
                          |  what it knows of each node                                    difficulty
                          v
    random numbers -> RecurrentLayer: one state per node and colour, the same weights in every round -> logits

Under autocast the linear layers run in the narrow type. States, sums and logits keep the type of the inputs.

The same weights serve every round, node and colour, so the network runs for any number of rounds and any K. Permuting
the colours permutes its answer, and so does permuting the nodes. Random numbers for each node and colour break the
symmetry between equal nodes (Li et al. 2022, arXiv 2208.06975). The encoder gets no gradient from the colouring, and no
label is an input.

Legend: N nodes, R rows (one for each node and colour it may take), D directed edges, B graphs, K colours, T rounds,
F features, H width of the encoder, W width of the recurrent layer, V = 2W.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

NUM_FEATURES = 4
"""Features of a node, raw counts: degree, core number, triangles, size of a clique found through the node."""
Gather = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class NodeLayout:
    """How nodes belong to graphs. `aggregate`: sums over neighbours [N, F] -> [N, F]; `to_graphs`: sums [N, F] ->
    [B, F]; `largest`: maxima [N, F] -> [B, F]; `to_nodes`: copies [B, F] -> [N, F]."""

    aggregate: Gather
    to_graphs: Gather
    largest: Gather
    to_nodes: Gather


@dataclass(frozen=True)
class RowLayout:
    """How rows belong to nodes. `aggregate`: sums over the neighbours' rows of the same colour [R, F] -> [R, F];
    `to_nodes`: means over a node's colours [R, F] -> [N, F]; `to_rows`: copies [N, F] -> [R, F]."""

    aggregate: Gather
    to_nodes: Gather
    to_rows: Gather


@dataclass(frozen=True)
class GraphEncoding:
    """The encoder's output: `node_NH` of nodes; of graphs `chromatic_B` (at least the clique found), `type_logits_BT`
    and `difficulty_B` (log10(1 + TabuCol moves)); `scale_N1`: 1 / square root of the degree."""

    node_NH: Tensor
    scale_N1: Tensor
    chromatic_B: Tensor
    type_logits_BT: Tensor
    difficulty_B: Tensor


class RecurrentLayer(nn.Module):
    """A gated recurrent unit (Cho et al. 2014) without its reset gate, with messages from neighbours as input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.message = nn.Linear(width, width)
        self.from_self = nn.Linear(width, 2 * width)
        self.from_neighbours = nn.Linear(width, 2 * width, bias=False)
        self.from_pooled = nn.Linear(width, 2 * width, bias=False)

    def forward(self, state: Tensor, aggregate: Gather, scale: Tensor, pooled: Tensor) -> Tensor:
        """The next state. `scale` multiplies the aggregated messages; `pooled` [..., 2 * width] is an input that all
        parts of a graph (or all colours of a node) share."""
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
        """Mean and attention over nodes, and sizes. States are in -1..1, so the softmax needs no maximum."""
        weight_N1 = torch.exp(self.attention(state_NH))
        attended_BH = layout.to_graphs(weight_N1 * state_NH) / layout.to_graphs(weight_N1)
        degree_B1 = layout.to_graphs(degree_N1) / num_nodes_B1
        density_B1 = degree_B1 / (num_nodes_B1 - 1).clamp(min=1)
        sizes_BF = torch.cat([num_nodes_B1.log(), torch.log1p(degree_B1), density_B1, clique_B1.log()], 1)
        return torch.cat([layout.to_graphs(state_NH) / num_nodes_B1, attended_BH, sizes_BF], 1)


class ColouringNet(nn.Module):
    """Encodes graphs and colours them.

    In evaluation mode the messages of the recurrent layer are multiplied by `damping`. Training makes the states
    settle. With weaker messages they settle less, so the search continues and finds more proper colourings.
    `layers`: 1 for shared weights; with more, the layers take turns.
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
        """Logits float[T, R] after each of `rounds` rounds, starting with round `first`; and the last states.

        `context_NV`: the encoder's input to each node, `from_encoder(node_NH)`; `scale_R1`: its scale for each row.
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
        """`node_features` float[N, NUM_FEATURES + K] (raw counts, then standard normal noise of each colour),
        `edge_index` int64[2, D] (both directions, any order), `batch` int64[N] (the graph of each node, rising) ->
        colour logits [N, K] after `rounds` rounds, chromatic number [B], type logits [B, types], difficulty [B].

        Uses only operations that ONNX Runtime computes correctly.
        """
        source_D, target_D = edge_index
        noise_NK = node_features[:, NUM_FEATURES:]
        num_nodes, num_colours = noise_NK.shape
        num_graphs = int(batch.max()) + 1

        def aggregate(x_NF: Tensor) -> Tensor:
            # One extra edge, to a row that is cut off: onnxruntime rejects a scatter of zero rows.
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
        encoding = self.encoder(node_features[:, :NUM_FEATURES], nodes)
        logits_TR, _ = self.colour(
            self.initial_state(noise_NK.reshape(-1)),
            self.from_encoder(encoding.node_NH),
            to_rows(encoding.scale_N1),
            RowLayout(aggregate_rows, over_colours, to_rows),
            self.rounds,
        )
        logits_NK = logits_TR[-1].reshape(num_nodes, num_colours)
        return logits_NK, encoding.chromatic_B, encoding.type_logits_BT, encoding.difficulty_B
