"""A simple undirected graph.

Legend: N nodes, E undirected edges, D = 2E directed edges.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Graph:
    """A simple undirected graph on the nodes 0..n-1.

    `edges_E2`: int64[E, 2], each edge once with u < v, sorted, no self-loop.
    """

    n: int
    edges_E2: Ints

    @classmethod
    def of(cls, n: int, pairs_P2: npt.ArrayLike) -> Graph:
        """The graph of pairs of nodes, in either direction, repeats allowed.

        Raises ValueError for a self-loop or a node outside 0..n-1.
        """
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
        """int64[N]: the number of neighbours of each node."""
        return np.bincount(self.edges_E2.ravel(), minlength=self.n).astype(np.int64)

    def directed(self) -> tuple[Ints, Ints]:
        """(source int64[D], target int64[D]): both directions of each edge, sorted by target."""
        u, v = self.edges_E2.T
        source, target = np.concatenate([u, v]), np.concatenate([v, u])
        order = np.argsort(target, kind="stable")  # the sources of each target are sorted already
        return source[order], target[order]

    def neighbours(self) -> list[Ints]:
        """The neighbours of each node, sorted."""
        source, _ = self.directed()
        return np.split(source, np.cumsum(self.degrees())[:-1]) if self.n else []

    def csr(self) -> tuple[Ints32, Ints32]:
        """Compressed sparse rows: (starts int32[N + 1], neighbours int32[D]). Do not modify.

        The neighbours of v, sorted, are neighbours[starts[v] : starts[v + 1]].
        """
        return self._rows

    @functools.cached_property
    def _rows(self) -> tuple[Ints32, Ints32]:
        source, _ = self.directed()
        starts = np.concatenate([[0], np.cumsum(self.degrees())])
        return starts.astype(np.int32), source.astype(np.int32)

    def conflicts(self, colours_N: npt.ArrayLike) -> int:
        """The number of edges whose ends have the same colour."""
        colours = np.asarray(colours_N)
        return int((colours[self.edges_E2[:, 0]] == colours[self.edges_E2[:, 1]]).sum())
