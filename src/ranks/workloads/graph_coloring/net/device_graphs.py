"""A data set of graphs in device memory. A batch is gathered by index, without a loop over graphs.

Legend: N nodes, E undirected edges, D = 2E directed edges, B graphs of a batch, G graphs of the
set.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ranks.workloads.graph_coloring.data.dataset import GraphDataset
from ranks.workloads.graph_coloring.data.families.training import FAMILIES
from ranks.workloads.graph_coloring.net.batch import UNKNOWN_TYPE, BatchLabels, GraphBatch


class DeviceGraphs:
    """A map-style data set: `gather(ids)` returns a batch of graphs with labels.

    Graphs whose best known colouring needs more than `max_colours` colours get 0 colours: they are
    only encoded. The counts of nodes and edges are kept on the host, so no batch waits for the
    device.
    """

    def __init__(self, stored: GraphDataset, max_colours: int, device: torch.device) -> None:
        def on_device(values: npt.NDArray[np.generic], dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.from_numpy(np.array(values)).to(device).to(dtype)

        floats = torch.get_default_dtype()
        self.sha256, self.device = stored.sha256, device
        self.nodes_G = torch.from_numpy(stored.node_counts_G.astype(np.int64))
        self.edges_G = torch.from_numpy(stored.edge_counts_G.astype(np.int64))
        high_G = torch.from_numpy(stored.high_G.astype(np.int64))
        self.colours_G = torch.where(high_G <= max_colours, high_G.clamp(min=2), 0)
        self.cost: Tensor | None = (self.nodes_G + self.edges_G).to(torch.float64)
        self.first_node_G, self.first_edge_G = (
            self.nodes_G.cumsum(0) - self.nodes_G,
            self.edges_G.cumsum(0) - self.edges_G,
        )
        self.features_NF = on_device(stored.features_NF, floats)
        self.edges_E2 = on_device(stored.edges_E2, torch.int32)
        self.reference_N = on_device(stored.colours_N, torch.int16)
        self.low_G, self.high_G = on_device(stored.low_G, floats), on_device(stored.high_G, floats)
        self.type_G, self.difficulty_G = on_device(stored.family_G), on_device(stored.difficulty_G, floats)
        if stored.families != tuple(FAMILIES):
            self.type_G.fill_(UNKNOWN_TYPE)

    def __len__(self) -> int:
        return len(self.nodes_G)

    def gather(self, ids: Tensor) -> GraphBatch:
        """The batch of the graphs with these ids, int64[B] on the host."""
        nodes_B, edges_B, colours_B = self.nodes_G[ids], self.edges_G[ids], self.colours_G[ids]
        num_rows, num_entries = int((nodes_B * colours_B).sum()), int((2 * edges_B * colours_B).sum())
        # On the host: which entries of the set belong to the batch.
        first_node_B = nodes_B.cumsum(0) - nodes_B
        ptr = torch.cat([first_node_B, nodes_B.sum(0, keepdim=True)])
        graph_N, node_N = _expand_ranges(self.first_node_G[ids], nodes_B)
        graph_E, edge_E = _expand_ranges(self.first_edge_G[ids], edges_B)
        moved = [t.to(self.device, non_blocking=True) for t in (ids, graph_N, node_N, graph_E, edge_E, ptr, colours_B)]
        ids, graph_N, node_N, graph_E, edge_E, ptr, colours_B = moved
        # On the device: gather these entries; node numbers now count from the start of the batch.
        edges_2E = (self.edges_E2[edge_E].to(torch.int64) + ptr[graph_E][:, None]).T.contiguous()
        return GraphBatch(
            features_NF=self.features_NF[node_N],
            edge_index_2D=both_directions(edges_2E, len(graph_N)),
            edges_2E=edges_2E,
            node_graph_N=graph_N,
            ptr=ptr,
            num_edges_B=edges_B.to(self.device, self.features_NF.dtype, non_blocking=True),
            num_colours_B=colours_B,
            item_B=ids,
            num_rows=num_rows,
            num_entries=num_entries,
            labels=BatchLabels(
                colours_N=self.reference_N[node_N].to(torch.int64),
                low_B=self.low_G[ids],
                high_B=self.high_G[ids],
                type_B=self.type_G[ids],
                difficulty_B=self.difficulty_G[ids],
            ),
        )


def _expand_ranges(starts_B: Tensor, counts_B: Tensor) -> tuple[Tensor, Tensor]:
    """(graph in the batch, index in the set) of each entry of the ranges starts to starts + counts
    - 1."""
    graph = torch.repeat_interleave(torch.arange(len(counts_B)), counts_B)
    first_B = counts_B.cumsum(0) - counts_B
    return graph, torch.arange(len(graph)) + (starts_B - first_B)[graph]


def both_directions(edges_2E: Tensor, num_nodes: int) -> Tensor:
    """int64[2, 2E]: both directions of each edge, sorted by target, then by source."""
    source_D, target_D = torch.cat([edges_2E, edges_2E.flip(0)], 1)
    order_D = torch.argsort(target_D * num_nodes + source_D)
    return torch.stack([source_D[order_D], target_D[order_D]])
