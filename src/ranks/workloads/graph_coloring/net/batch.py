"""Batches of graphs without padding: the nodes and edges of all graphs are concatenated.

Legend: N nodes, E undirected edges, D = 2E directed edges, B graphs, F features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ranks.workloads.graph_coloring.graphs.features import node_features
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

UNKNOWN_TYPE = -1
"""The type of a graph that belongs to no training family, such as a user's own graph."""


@dataclass(frozen=True)
class BatchLabels:
    """The labels of each graph. No label is an input of the network."""

    colours_N: Tensor
    """int64[N]: a proper colouring of each graph with `high_B` colours."""
    low_B: Tensor
    """float[B]: lower bound of the chromatic number."""
    high_B: Tensor
    """float[B]: upper bound of the chromatic number. It is known if both bounds are equal."""
    type_B: Tensor
    """int64[B]: the family of the graph, or UNKNOWN_TYPE."""
    difficulty_B: Tensor
    """float[B]: log10(1 + TabuCol moves) with `high_B` colours; NaN if it was not measured."""


@dataclass(frozen=True)
class GraphBatch:
    """B concatenated graphs. Graph b may use `num_colours_B[b]` colours; 0: it is only encoded."""

    features_NF: Tensor
    """float[N, 4]: raw counts; see `graphs.features`."""
    edge_index_2D: Tensor
    """int64[2, D]: source and target of both directions of each edge, sorted by target, then source."""
    edges_2E: Tensor
    """int64[2, E]: both ends of each undirected edge, graph by graph."""
    node_graph_N: Tensor
    """int64[N], non-decreasing: the graph of each node."""
    ptr: Tensor
    """int64[B + 1]: the nodes of graph b are ptr[b] to ptr[b + 1] - 1."""
    num_edges_B: Tensor
    """float[B]: the number of undirected edges."""
    num_colours_B: Tensor
    """int64[B]: the number of allowed colours."""
    item_B: Tensor
    """int64[B]: the key of each graph's random numbers."""
    num_rows: int
    """Nodes x colours, summed over graphs; on the host, so no step waits for the device."""
    num_entries: int
    """Directed edges x colours, summed over graphs; on the host."""
    labels: BatchLabels | None = None

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def to(self, device: torch.device) -> GraphBatch:
        """The batch on `device`."""

        def moved(part: GraphBatch | BatchLabels) -> dict[str, Tensor]:
            tensors = {name: value for name, value in vars(part).items() if isinstance(value, Tensor)}
            return {name: value.to(device, non_blocking=True) for name, value in tensors.items()}

        labels = replace(self.labels, **moved(self.labels)) if self.labels is not None else None
        return replace(self, **moved(self), labels=labels)


def collate(graphs: Sequence[Graph], num_colours: Sequence[int], items: Sequence[int]) -> GraphBatch:
    """A batch of graphs without labels. Floats have torch's default dtype."""
    sizes = [graph.n for graph in graphs]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    edges = [np.stack(graph.directed()) + start for graph, start in zip(graphs, starts, strict=False)]
    features: list[Ints] = [node_features(graph).astype(np.int64) for graph in graphs]
    dtype = torch.get_default_dtype()
    ends = [graph.edges_E2.T + start for graph, start in zip(graphs, starts, strict=False)]
    return GraphBatch(
        features_NF=torch.as_tensor(np.concatenate(features), dtype=dtype),
        edge_index_2D=torch.as_tensor(np.concatenate(edges, axis=1)),
        edges_2E=torch.as_tensor(np.concatenate(ends, axis=1)),
        node_graph_N=torch.as_tensor(np.repeat(np.arange(len(sizes)), sizes)),
        ptr=torch.as_tensor(starts),
        num_edges_B=torch.as_tensor([float(graph.num_edges) for graph in graphs], dtype=dtype),
        num_colours_B=torch.as_tensor(num_colours, dtype=torch.int64),
        item_B=torch.as_tensor(items, dtype=torch.int64),
        num_rows=sum(g.n * k for g, k in zip(graphs, num_colours, strict=True)),
        num_entries=sum(2 * g.num_edges * k for g, k in zip(graphs, num_colours, strict=True)),
    )
