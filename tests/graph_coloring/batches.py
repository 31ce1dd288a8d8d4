"""Random graphs, and batches of them in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranks.workloads.graph_coloring.data.families.training import random_graph
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.batch import GraphBatch, collate


def graphs_of(sizes: list[tuple[int, int]]) -> list[Graph]:
    """A random graph of each (nodes, edges)."""
    return [random_graph(np.random.default_rng(i), n, m) for i, (n, m) in enumerate(sizes)]


def batch_of(graphs: list[Graph], k: int | list[int]) -> GraphBatch:
    """The graphs, to be coloured with k colours each."""
    batch = collate(graphs, [k] * len(graphs) if isinstance(k, int) else k, range(len(graphs)))
    return replace(batch, features_NF=batch.features_NF.double(), num_edges_B=batch.num_edges_B.double())
