"""A data set of graphs in device memory. Only the ids of a batch are sent there, and the device
builds the batch.

Legend: N nodes, E undirected edges, D = 2E directed edges, B graphs of a batch, G graphs of the
set.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ranks.workloads.graph_coloring.data.dataset import Array, GraphDataset
from ranks.workloads.graph_coloring.data.families.training import FAMILIES
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.batch import UNKNOWN_TYPE, BatchLabels, GraphBatch
from ranks.workloads.graph_coloring.net.cost import UpdateCost


class DeviceGraphs:
    """A map-style data set: `gather(ids)` returns a batch of graphs with labels.

    Graphs whose best known colouring needs more than `max_colours` colours get 0 colours: they are
    only encoded. The sizes of the graphs are also on the host. So the host knows the shapes of a
    batch and does not wait for the device. An edge takes 24 bytes of device memory, a node 18.
    """

    def __init__(
        self, stored: GraphDataset, max_colours: int, device: torch.device, cost: UpdateCost | None = None
    ) -> None:
        """`cost`: in an update; without it, all graphs cost the same."""
        floats = torch.get_default_dtype()
        self.sha256, self.device = stored.sha256, device
        self.nodes_G, self.edges_G = _int64(stored.node_counts_G), _int64(stored.edge_counts_G)
        high_G = _int64(stored.high_G)
        colours_G = torch.where(high_G <= max_colours, high_G.clamp(min=2), 0)
        self.cost = cost.of_graphs(self.nodes_G, self.edges_G, colours_G) if cost is not None else None
        rows_G, entries_G = self.nodes_G * colours_G, 2 * self.edges_G * colours_G
        self._sizes_G4 = torch.stack([self.nodes_G, self.edges_G, rows_G, entries_G], 1)
        type_G = _int64(stored.family_G)
        if stored.families != tuple(FAMILIES):
            type_G = torch.full_like(type_G, UNKNOWN_TYPE)
        first_node_G, first_edge_G = _int64(stored.first_node_G), _int64(stored.first_edge_G)
        # The first node, edge and directed edge of each graph, and its numbers of them.
        self._first_3G = torch.stack([first_node_G, first_edge_G, 2 * first_edge_G]).to(device)
        self._count_3G = torch.stack([self.nodes_G, self.edges_G, 2 * self.edges_G]).to(device)
        self._colours_type_2G = torch.stack([colours_G, type_G]).to(device)
        difficulty_G = torch.from_numpy(stored.difficulty_G)
        numbers = _int64(stored.low_G), high_G, difficulty_G, self.edges_G
        self._labels_4G = torch.stack([numbers_G.to(floats) for numbers_G in numbers]).to(device)
        self._features_NF = torch.from_numpy(stored.features_NF).to(device).to(floats)
        self._reference_N = torch.from_numpy(stored.colours_N.astype(np.int16)).to(device)
        # All graphs as one graph: its nodes are numbered from the start of the set.
        first_E = np.repeat(stored.first_node_G, stored.edge_counts_G)
        whole = Graph(len(stored.features_NF), stored.edges_E2 + first_E[:, None])
        self._edges_2E = torch.from_numpy(whole.edges_E2.T.astype(np.int32, order="C")).to(device)
        self._edges_2D = torch.from_numpy(np.stack(whole.directed(), dtype=np.int32, casting="unsafe")).to(device)

    def __len__(self) -> int:
        return len(self.nodes_G)

    def gather(self, ids: Tensor) -> GraphBatch:
        """The batch of the graphs with these ids, int64[B] on the host."""
        num_nodes, num_edges, num_rows, num_entries = self._sizes_G4[ids].sum(0).tolist()
        # The rest is on the device. Up to 64 KB, which are 8192 ids, are copied without a wait (CUDA
        # C++ Programming Guide, "Concurrent Execution between Host and Device").
        ids = ids.to(self.device, non_blocking=True)
        count_3B = self._count_3G[:, ids]
        end_3B = count_3B.cumsum(1)
        # From a position in the batch to the position in the set.
        offset_3B = self._first_3G[:, ids] - (end_3B - count_3B)

        def entries(kind: int, total: int) -> tuple[Tensor, Tensor]:
            """The graph of each node, edge or directed edge of the batch, and its position in the
            set."""
            # With `output_size` the host does not wait for the sum (torch, ATen/native/Repeat.h).
            graph = torch.repeat_interleave(count_3B[kind], output_size=total)
            return graph, torch.arange(total, device=self.device) + offset_3B[kind][graph]

        graph_N, node_N = entries(0, num_nodes)
        graph_E, edge_E = entries(1, num_edges)
        graph_D, edge_D = entries(2, 2 * num_edges)
        colours_B, type_B = self._colours_type_2G[:, ids]
        low_B, high_B, difficulty_B, num_edges_B = self._labels_4G[:, ids]
        return GraphBatch(
            features_NF=self._features_NF[node_N],
            edge_index_2D=self._edges_2D[:, edge_D] - offset_3B[0][graph_D],
            edges_2E=self._edges_2E[:, edge_E] - offset_3B[0][graph_E],
            node_graph_N=graph_N,
            ptr=torch.cat([end_3B.new_zeros(1), end_3B[0]]),
            num_edges_B=num_edges_B,
            num_colours_B=colours_B,
            item_B=ids,
            num_rows=num_rows,
            num_entries=num_entries,
            labels=BatchLabels(
                colours_N=self._reference_N[node_N].to(torch.int64),
                low_B=low_B,
                high_B=high_B,
                type_B=type_B,
                difficulty_B=difficulty_B,
            ),
        )


def _int64(values: Array) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))
