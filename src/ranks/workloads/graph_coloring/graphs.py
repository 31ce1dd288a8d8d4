"""Graphs, and batches of graphs without padding.

Legend: N nodes, E undirected edges, D = 2E directed edges, K colours, B graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Graph:
    """A simple undirected graph. `edges_E2`: int64[E, 2], each edge once with u < v, in rising order, no self-loop."""

    n: int
    edges_E2: Ints

    @classmethod
    def of(cls, n: int, pairs_P2: npt.ArrayLike) -> Graph:
        """From pairs in either direction, repeats allowed. ValueError on a self-loop or a node outside 0..n-1."""
        pairs = np.asarray(pairs_P2, dtype=np.int64).reshape(-1, 2)
        if len(pairs) and (pairs.min() < 0 or pairs.max() >= n):
            raise ValueError(f"an edge names a node outside 0..{n - 1}")
        if (pairs[:, 0] == pairs[:, 1]).any():
            raise ValueError("an edge joins a node with itself")
        codes = np.unique(pairs.min(1, initial=n) * n + pairs.max(1, initial=-1))
        return cls(n, np.stack([codes // max(n, 1), codes % max(n, 1)], 1))

    @property
    def num_edges(self) -> int:
        return len(self.edges_E2)

    def degrees(self) -> Ints:
        """int64[N]."""
        return np.bincount(self.edges_E2.ravel(), minlength=self.n).astype(np.int64)

    def directed(self) -> tuple[Ints, Ints]:
        """(source int64[D], target int64[D]): each edge in both directions, sorted by target, then by source."""
        u, v = self.edges_E2.T
        source, target = np.concatenate([u, v]), np.concatenate([v, u])
        order = np.lexsort((source, target))
        return source[order], target[order]

    def neighbours(self) -> list[Ints]:
        """The neighbours of each node, in rising order."""
        source, _ = self.directed()
        return np.split(source, np.cumsum(self.degrees())[:-1]) if self.n else []

    def bitsets(self) -> list[int]:
        """The neighbours of each node as the bits of one integer."""
        sets = [0] * self.n
        for u, v in self.edges_E2.tolist():
            sets[u] |= 1 << v
            sets[v] |= 1 << u
        return sets

    def conflicts(self, colours_N: npt.ArrayLike) -> int:
        """Edges whose ends have one colour."""
        colours = np.asarray(colours_N)
        return int((colours[self.edges_E2[:, 0]] == colours[self.edges_E2[:, 1]]).sum())


@dataclass(frozen=True)
class GraphBatch:
    """B graphs that are to be coloured with the same number of colours K, laid end to end."""

    noise_NK: Tensor
    """float[N, K]: random node ids, one per colour. Without them equal nodes could not take different colours."""
    edge_index_2D: Tensor
    """int64[2, D]: source and target of each directed edge, both directions, sorted by target."""
    node_graph_N: Tensor
    """int64[N], rising: the graph of each node."""
    ptr: Tensor
    """int64[B + 1]: graph b has the nodes ptr[b]..ptr[b + 1] - 1."""
    num_edges_B: Tensor
    """float[B]: undirected edges."""
    chromatic_low_B: Tensor
    """float[B]: the chromatic number is at least this."""
    chromatic_high_B: Tensor
    """float[B]: and at most this; equal where it is known."""

    @property
    def num_colours(self) -> int:
        return self.noise_NK.shape[1]

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def to(self, device: torch.device) -> GraphBatch:
        """The batch on `device`."""
        moved = {name: value.to(device, non_blocking=True) for name, value in vars(self).items()}
        return replace(self, **moved)


def collate(
    graphs: Sequence[Graph],
    noise: Sequence[npt.NDArray[np.float64]],
    bounds: Sequence[tuple[int, int]] | None = None,
) -> GraphBatch:
    """Graphs, the noise float64[n, K] of each, and what is known of the chromatic number of each -> one batch.

    Floats get torch's default type. Without `bounds` nothing is claimed of the chromatic number (1..n).
    """
    sizes = [graph.n for graph in graphs]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    edges = [np.stack(graph.directed()) + start for graph, start in zip(graphs, starts, strict=False)]
    dtype = torch.get_default_dtype()
    low_high = bounds if bounds is not None else [(1, max(graph.n, 1)) for graph in graphs]
    return GraphBatch(
        noise_NK=torch.as_tensor(np.concatenate(noise), dtype=dtype),
        edge_index_2D=torch.as_tensor(np.concatenate(edges, axis=1)),
        node_graph_N=torch.as_tensor(np.repeat(np.arange(len(sizes)), sizes)),
        ptr=torch.as_tensor(starts),
        num_edges_B=torch.as_tensor([float(graph.num_edges) for graph in graphs], dtype=dtype),
        chromatic_low_B=torch.as_tensor([float(low) for low, _ in low_high], dtype=dtype),
        chromatic_high_B=torch.as_tensor([float(high) for _, high in low_high], dtype=dtype),
    )
