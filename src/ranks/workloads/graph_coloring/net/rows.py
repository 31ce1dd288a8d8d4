"""The rows of a batch: their order, their neighbours and their random numbers; and the network on
them.

A row is a node with one of its allowed colours. The rows of node v are ptr_N[v] to ptr_N[v + 1] -
1, so graphs with different numbers of colours share a batch without padding.

Legend: N nodes, D directed edges, E undirected edges, R rows, M directed edges x colours,
P = M / 2 edges x colours, B graphs, T rounds, F features.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ranks.engine.sharding import rng
from ranks.workloads.graph_coloring.net.batch import GraphBatch
from ranks.workloads.graph_coloring.net.model import ColouringNet, GraphEncoding, NodeLayout, RowLayout
from ranks.workloads.graph_coloring.net.sums import Sums, group_sums, neighbour_sums, sum_rows

MAX_ROWS_BITS = 28
"""A graph has fewer than 2^28 rows, so (item, row) fits into one int64."""


@dataclass(frozen=True)
class Rows:
    """Which rows belong to which node, and which rows are neighbours."""

    node_R: Tensor
    """int64[R]: the node of each row."""
    colours_N: Tensor
    """int64[N]: the number of rows of each node."""
    ptr_N: Tensor
    """int64[N + 1]: the first row of each node, then the number of rows."""
    neighbours: Sums
    """The sum over the neighbours' rows of the same colour."""
    by_node: Sums
    """The sum over the rows of each node."""


def _expand(starts: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """(group, position in the group) of each of `total` entries.

    Group g has starts[g + 1] - starts[g] entries.
    """
    # With `output_size` the host does not wait for the sum (torch, ATen/native/Repeat.h).
    group = torch.repeat_interleave(starts.diff(), output_size=total)
    return group, torch.arange(total, device=starts.device) - starts[group]


def _ptr(counts: Tensor) -> Tensor:
    """The start of each group, then the total."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def rows_of(batch: GraphBatch) -> Rows:
    """The rows of a batch."""
    colours_N = batch.num_colours_B[batch.node_graph_N]
    ptr_N = _ptr(colours_N)
    node_R, colour_R = _expand(ptr_N, batch.num_rows)
    # Row (v, c) has one entry for each edge into v: the row of the edge's source with the colour c.
    source_D = batch.edge_index_2D[0]
    edges = neighbour_sums(batch.edge_index_2D, len(colours_N))
    starts_R = _ptr(edges.starts.diff()[node_R])
    row_M, position_M = _expand(starts_R, batch.num_entries)
    neighbour_M = ptr_N[source_D[edges.starts[node_R[row_M]] + position_M]] + colour_R[row_M]
    neighbours = Sums(neighbour_M, starts_R, neighbour_M, starts_R)
    return Rows(node_R, colours_N, ptr_N, neighbours, group_sums(node_R, ptr_N))


def edge_rows(batch: GraphBatch, rows: Rows) -> tuple[Tensor, Tensor, Sums]:
    """(u_P, v_P, by_edge): the rows of both ends of each edge in each colour, and the sum over an
    edge's colours."""
    starts_E = _ptr(rows.colours_N[batch.edges_2E[0]])
    edge_P, colour_P = _expand(starts_E, batch.num_entries // 2)
    u_P, v_P = (rows.ptr_N[end_E[edge_P]] + colour_P for end_E in batch.edges_2E)
    return u_P, v_P, group_sums(edge_P, starts_E)


def row_noise(key: int, batch: GraphBatch, rows: Rows) -> Tensor:
    """float[R]: standard normal numbers, keyed by (key, item of the graph, row within the
    graph)."""
    graph_R = batch.node_graph_N[rows.node_R]
    local_R = torch.arange(batch.num_rows, device=graph_R.device) - rows.ptr_N[batch.ptr[graph_R]]
    id_R = (batch.item_B[graph_R] << MAX_ROWS_BITS) + local_R
    return rng.normal(key, id_R, 1)[:, 0].to(batch.features_NF.dtype)


def colour_noise(key: int, batch: GraphBatch, rows: Rows) -> Tensor:
    """float[R]: one standard normal number per colour, equal for all nodes; for the ablation."""
    colour_R = torch.arange(batch.num_rows, device=rows.node_R.device) - rows.ptr_N[rows.node_R]
    return rng.normal(key, colour_R, 1)[:, 0].to(batch.features_NF.dtype)


def encode(model: ColouringNet, batch: GraphBatch) -> GraphEncoding:
    """The encoding of a batch."""
    neighbours = neighbour_sums(batch.edge_index_2D, len(batch.node_graph_N))
    group = group_sums(batch.node_graph_N, batch.ptr)

    def largest(x_N1: Tensor) -> Tensor:
        lowest_B1 = x_N1.new_full((len(batch), 1), -torch.inf)
        return lowest_B1.scatter_reduce(0, batch.node_graph_N[:, None], x_N1, "amax")

    layout = NodeLayout(
        aggregate=lambda x: sum_rows(x, neighbours),
        to_graphs=lambda x: sum_rows(x, group),
        largest=largest,
        to_nodes=lambda x: sum_rows(x, group.transposed),
    )
    return model.encoder(batch.features_NF, layout)


def unroll(
    model: ColouringNet, encoding: GraphEncoding, noise_R: Tensor, rows: Rows, rounds: int, burn_in: int = 0
) -> Tensor:
    """The logits float[T, R] of `rounds` rounds.

    `burn_in`: the number of rounds before them, which have neither gradients nor logits.
    """
    colours_N1 = rows.colours_N[:, None].clamp(min=1).to(noise_R.dtype)
    layout = RowLayout(
        aggregate=lambda x: sum_rows(x, rows.neighbours),
        to_nodes=lambda x: sum_rows(x, rows.by_node) / colours_N1,
        to_rows=lambda x: sum_rows(x, rows.by_node.transposed),
    )
    context_NV, scale_R1 = model.from_encoder(encoding.node_NH), encoding.scale_N1[rows.node_R]
    state_RW = model.initial_state(noise_R)
    if burn_in:
        with torch.no_grad():
            _, state_RW = model.colour(state_RW, context_NV, scale_R1, layout, burn_in)
    return model.colour(state_RW, context_NV, scale_R1, layout, rounds, burn_in)[0]
