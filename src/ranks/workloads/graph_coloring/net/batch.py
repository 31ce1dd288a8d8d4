"""Batches of graphs without padding.

Legend: N nodes, E undirected edges, D = 2E directed edges, B graphs, F features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ranks.workloads.graph_coloring.graphs.features import node_features
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

UNKNOWN_TYPE = -1
"""Of graphs that are of no family of the training: a user's own, or unseen ones."""


@dataclass(frozen=True)
class Labels:
    """What is known of each graph. No part of it is among the features.

    `colours_N`: int64[N], a proper colouring with `high_B` colours. `low_B`, `high_B`: float[B], the chromatic number
    lies between them, and is known where they are equal. `type_B`: int64[B], the family it was drawn from, or
    UNKNOWN_TYPE. `difficulty_B`: float[B], log10(1 + TabuCol moves) at `high_B` colours, NaN where it was not measured.
    """

    colours_N: Tensor
    low_B: Tensor
    high_B: Tensor
    type_B: Tensor
    difficulty_B: Tensor


@dataclass(frozen=True)
class GraphBatch:
    """B graphs laid end to end; graph b is to be coloured with `num_colours_B[b]` colours (with none it is only read).

    `num_rows`, `num_entries`: nodes x colours and directed edges x colours, all graphs together, known without asking
    the device.
    """

    features_NF: Tensor
    """float[N, 4]: raw counts, see `graphs.features`."""
    edge_index_2D: Tensor
    """int64[2, D]: source and target of each directed edge, both directions, sorted by target, then by source."""
    edges_2E: Tensor
    """int64[2, E]: the ends of each edge, once, graph by graph."""
    node_graph_N: Tensor
    """int64[N], rising: the graph of each node."""
    ptr: Tensor
    """int64[B + 1]: graph b has the nodes ptr[b]..ptr[b + 1] - 1."""
    num_edges_B: Tensor
    """float[B]: undirected edges."""
    num_colours_B: Tensor
    """int64[B]."""
    item_B: Tensor
    """int64[B]: what a graph's random numbers are keyed by."""
    num_rows: int
    num_entries: int
    labels: Labels | None = None

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def to(self, device: torch.device) -> GraphBatch:
        """The batch on `device`."""

        def moved(part: GraphBatch | Labels) -> dict[str, Tensor]:
            tensors = {name: value for name, value in vars(part).items() if isinstance(value, Tensor)}
            return {name: value.to(device, non_blocking=True) for name, value in tensors.items()}

        labels = replace(self.labels, **moved(self.labels)) if self.labels is not None else None
        return replace(self, **moved(self), labels=labels)


def collate(
    graphs: Sequence[Graph],
    num_colours: Sequence[int],
    items: Sequence[int],
    stop: Callable[[], bool] = lambda: False,
) -> GraphBatch:
    """Graphs without labels, for colouring. Floats get torch's default type. Raises OutOfTime where `stop` says so."""
    sizes = [graph.n for graph in graphs]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    edges = [np.stack(graph.directed()) + start for graph, start in zip(graphs, starts, strict=False)]
    features: list[Ints] = [node_features(graph, stop).astype(np.int64) for graph in graphs]
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
