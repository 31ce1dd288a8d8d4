"""Training graphs. Each is a pure function of (seed, purpose, item id), so nothing is stored and no deal matters.

Families: `threshold` (Erdos-Renyi near the 3-colouring threshold, average degree c about 4.69), `planted` (a hidden
k-colouring, chromatic number at most k) and `small` (random, chromatic number computed exactly).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ranks.engine.draws import numpy_generator
from ranks.workloads.graph_coloring.config import DataConfig
from ranks.workloads.graph_coloring.exact import chromatic_number, greedy_clique
from ranks.workloads.graph_coloring.graphs import Graph, GraphBatch, collate

VERSION = 1
"""Part of the data's hash: raised whenever a change here changes a graph."""


@dataclass(frozen=True)
class Example:
    """A graph, the number of colours it is to be coloured with, and what is known of its chromatic number."""

    graph: Graph
    num_colours: int
    chromatic_low: int
    chromatic_high: int
    noise_NK: npt.NDArray[np.float64]


def random_graph(rng: np.random.Generator, n: int, num_edges: int) -> Graph:
    """Erdos-Renyi G(n, m): `num_edges` different edges, all sets equally likely."""
    total = n * (n - 1) // 2
    picked_E = rng.choice(total, size=min(num_edges, total), replace=False, shuffle=False)
    return _from_pair_ids(n, picked_E)


def _from_pair_ids(n: int, ids_E: npt.NDArray[np.int64]) -> Graph:
    """Pair i of the list (1,0) (2,0) (2,1) (3,0) ..., as edges."""
    v_E = ((1 + np.sqrt(8.0 * ids_E + 1)) / 2).astype(np.int64)
    u_E = ids_E - v_E * (v_E - 1) // 2
    return Graph.of(n, np.stack([u_E, v_E], 1))


def planted_graph(rng: np.random.Generator, n: int, num_edges: int, k: int) -> Graph:
    """A random graph with a hidden k-colouring of nearly equal classes: edges only between classes."""
    class_N = rng.permutation(np.arange(n) % k)
    u_P, v_P = np.triu_indices(n, 1)
    across = np.flatnonzero(class_N[u_P] != class_N[v_P])
    picked = rng.choice(across, size=min(num_edges, len(across)), replace=False, shuffle=False)
    return Graph.of(n, np.stack([u_P[picked], v_P[picked]], 1))


def threshold_degree(k: int) -> float:
    """Average degree near which random graphs stop being k-colourable: 2 k ln k - ln k (Achlioptas & Naor 2005)."""
    return (2 * k - 1) * math.log(k)


def example(data: DataConfig, seed: int, purpose: str, item: int) -> Example:
    """Item `item` of the endless data set named `purpose`."""
    rng = numpy_generator(seed, f"{purpose}/graph", 0, item)
    kind = rng.random()
    if kind < data.small_share:
        n = int(rng.integers(4, data.small_nodes + 1))
        graph = random_graph(rng, n, round(rng.uniform(0.1, 0.9) * n * (n - 1) / 2))
        low = high = chromatic_number(graph)
        k = max(low, 2)
    elif kind < data.small_share + data.planted_share:
        k = int(rng.integers(3, data.planted_colours + 1))
        n = int(rng.integers(data.min_nodes, data.max_nodes + 1))
        graph = planted_graph(rng, n, round(rng.uniform(0.5, 0.95) * threshold_degree(k) * n / 2), k)
        low, high = len(greedy_clique(graph.bitsets())), k
    else:
        n, k = int(rng.integers(data.min_nodes, data.max_nodes + 1)), 3
        graph = random_graph(rng, n, round(rng.uniform(data.min_degree, data.max_degree) * n / 2))
        low, high = len(greedy_clique(graph.bitsets())), greedy_bound(graph)
    noise = rng.standard_normal((graph.n, k))
    return Example(graph, k, low, high, noise)


def greedy_bound(graph: Graph) -> int:
    """Colours that greedy colouring in smallest-last order needs at most: degeneracy + 1 (Szekeres & Wilf 1968)."""
    near = graph.bitsets()
    degree = [nodes.bit_count() for nodes in near]
    of_degree = [0] * (max(degree, default=0) + 1)
    for v, d in enumerate(degree):
        of_degree[d] |= 1 << v
    left, bound = (1 << graph.n) - 1, 0
    while left:
        least = next(d for d, nodes in enumerate(of_degree) if nodes)
        bound = max(bound, least + 1)
        v = (of_degree[least] & -of_degree[least]).bit_length() - 1
        of_degree[least] ^= 1 << v
        left ^= 1 << v
        others = near[v] & left
        while others:
            bit = others & -others
            u = bit.bit_length() - 1
            of_degree[degree[u]] ^= bit
            degree[u] -= 1
            of_degree[degree[u]] |= bit
            others ^= bit
    return bound


@dataclass(frozen=True)
class GeneratedGraphs:
    """A data set of `data.num_graphs` graphs that are made when they are asked for."""

    data: DataConfig
    seed: int
    purpose: str
    device: torch.device = torch.device("cpu")
    cost: Tensor | None = None

    def __len__(self) -> int:
        return self.data.num_graphs

    @property
    def sha256(self) -> str:
        return hashlib.sha256(f"{VERSION}/{self.data}/{self.seed}/{self.purpose}".encode()).hexdigest()

    def gather(self, ids: Tensor) -> tuple[GraphBatch, ...]:
        """The graphs of int64[B] item ids, one batch for each number of colours that occurs, in rising order."""
        items: list[int] = ids.tolist()
        examples = [example(self.data, self.seed, self.purpose, item) for item in items]
        return tuple(
            collate(
                [e.graph for e in examples if e.num_colours == k],
                [e.noise_NK for e in examples if e.num_colours == k],
                [(e.chromatic_low, e.chromatic_high) for e in examples if e.num_colours == k],
            ).to(self.device)
            for k in sorted({e.num_colours for e in examples})
        )


def fresh_noise(seed: int, purpose: str, try_: int, item: int, n: int, k: int) -> npt.NDArray[np.float64]:
    """float64[n, k]: the random node ids of one try on one graph."""
    return numpy_generator(seed, f"{purpose}/noise/{k}", try_, item).standard_normal((n, k))
