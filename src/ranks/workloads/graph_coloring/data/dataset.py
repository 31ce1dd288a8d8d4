"""A data set of graphs in memory, as flat arrays, and the bytes of its parts.

A part holds some hundred graphs.

Legend: G graphs, N nodes of all graphs, E undirected edges of all graphs, F features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from ranks.workloads.graph_coloring.data.labels import Labels
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints

PART_PREFIX = "part-"
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class GraphArrays:
    """Several graphs, concatenated in order."""

    node_counts_G: Array
    """int32[G]"""
    edge_counts_G: Array
    """int32[G]"""
    edges_E2: Array
    """uint16[E, 2] (int32 if a graph has over 65,536 nodes): u < v, numbered within their graph."""
    features_NF: Array
    """int32[N, 4]: see `graphs.features`."""
    colours_N: Array
    """uint16[N]: a proper colouring of each graph with the colours 0..high-1."""
    low_G: Array
    """uint16[G]: lower bound of the chromatic number."""
    high_G: Array
    """uint16[G]: upper bound of the chromatic number; equal to the lower bound if it is proven."""
    family_G: Array
    """uint8[G]: index in the list of families."""
    difficulty_G: Array
    """float32[G]: see `Labels`."""
    hash_G: Array
    """uint64[G]: see `weisfeiler_lehman_hash`."""


@dataclass(frozen=True)
class GraphDataset(GraphArrays):
    """All graphs of a data set folder. `sha256`: of its manifest, which holds that of each part."""

    families: tuple[str, ...]
    sha256: str

    def __len__(self) -> int:
        return len(self.node_counts_G)

    @cached_property
    def first_node_G(self) -> Ints:
        """int64[G]: where the nodes of each graph begin."""
        return np.cumsum(self.node_counts_G, dtype=np.int64) - self.node_counts_G

    @cached_property
    def first_edge_G(self) -> Ints:
        """int64[G]: where the edges of each graph begin."""
        return np.cumsum(self.edge_counts_G, dtype=np.int64) - self.edge_counts_G

    def graph(self, g: int) -> Graph:
        """Graph number g."""
        first, count = int(self.first_edge_G[g]), int(self.edge_counts_G[g])
        return Graph(int(self.node_counts_G[g]), self.edges_E2[first : first + count].astype(np.int64))

    def labels(self, g: int) -> Labels:
        """The labels of graph number g."""
        first, count = int(self.first_node_G[g]), int(self.node_counts_G[g])
        colours_N = self.colours_N[first : first + count].astype(np.int64)
        return Labels(int(self.low_G[g]), int(self.high_G[g]), colours_N, float(self.difficulty_G[g]))


@dataclass(frozen=True)
class LabelledGraph:
    """A graph with everything that a part stores of it."""

    graph: Graph
    features_NF: Array
    labels: Labels
    family: int
    hash: int


def part_name(number: int) -> str:
    """The file name of a part: 'part-0007.safetensors'."""
    return f"{PART_PREFIX}{number:04d}.safetensors"


def pack(graphs: Sequence[LabelledGraph]) -> bytes:
    """The bytes of a part."""
    max_nodes = max(each.graph.n for each in graphs)
    edge_dtype = np.uint16 if max_nodes <= 1 << 16 else np.int32
    arrays = GraphArrays(
        node_counts_G=np.array([each.graph.n for each in graphs], dtype=np.int32),
        edge_counts_G=np.array([each.graph.num_edges for each in graphs], dtype=np.int32),
        edges_E2=np.concatenate([each.graph.edges_E2 for each in graphs]).astype(edge_dtype),
        features_NF=np.concatenate([each.features_NF for each in graphs]).astype(np.int32),
        colours_N=np.concatenate([each.labels.colours_N for each in graphs]).astype(np.uint16),
        low_G=np.array([each.labels.low for each in graphs], dtype=np.uint16),
        high_G=np.array([each.labels.high for each in graphs], dtype=np.uint16),
        family_G=np.array([each.family for each in graphs], dtype=np.uint8),
        difficulty_G=np.array([each.labels.difficulty for each in graphs], dtype=np.float32),
        hash_G=np.array([each.hash for each in graphs], dtype=np.uint64),
    )
    return safetensors.numpy.save(vars(arrays))


def unpack(content: bytes) -> GraphArrays:
    """The arrays of a part."""
    return GraphArrays(**safetensors.numpy.load(content))
