"""Example graphs for tests, and brute-force functions on graphs."""

from __future__ import annotations

import itertools
from pathlib import Path

import networkx as nx
import numpy as np

from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.graph import Graph

QUEENS = ((5, 5), (6, 6), (7, 7), (8, 8), (9, 9), (8, 12), (10, 10), (11, 11))


def of_networkx(source: nx.Graph) -> Graph:
    index = {name: number for number, name in enumerate(source)}
    return Graph.of(len(index), np.array([(index[u], index[v]) for u, v in source.edges], np.int64).reshape(-1, 2))


def to_networkx(graph: Graph) -> nx.Graph:
    out = nx.empty_graph(graph.n)
    out.add_edges_from(graph.edges_E2.tolist())
    return out


def random_graph(rng: np.random.Generator, n: int, density: float) -> Graph:
    return Graph.of(n, np.argwhere(np.triu(rng.random((n, n)) < density, 1)))


def union(*graphs: Graph) -> Graph:
    """The disjoint union of graphs."""
    starts = np.cumsum([0, *(graph.n for graph in graphs)])
    return Graph.of(int(starts[-1]), np.concatenate([g.edges_E2 + s for g, s in zip(graphs, starts, strict=False)]))


def queen(rows: int, columns: int) -> Graph:
    """The queen graph of a board: squares are adjacent if a queen can move between them."""
    squares = enumerate(itertools.product(range(rows), range(columns)))
    attacks = [
        (i, j)
        for (i, (a, b)), (j, (c, d)) in itertools.combinations(squares, 2)
        if a == c or b == d or abs(a - c) == abs(b - d)
    ]
    return Graph.of(rows * columns, attacks)


def partitions(n: int) -> np.ndarray:
    """All partitions of n nodes into classes, one per row; classes are numbered in the order of
    their first nodes."""
    rows = [()]
    for _ in range(n):
        rows = [(*row, c) for row in rows for c in range(max(row, default=-1) + 2)]
    return np.array(rows, np.int64).reshape(len(rows), n)


def brute_force(graph: Graph, partitions_RN: np.ndarray) -> int:
    """The chromatic number: the fewest classes of a partition without adjacent nodes in one class."""
    u, v = graph.edges_E2.T
    proper_R = (partitions_RN[:, u] != partitions_RN[:, v]).all(1)
    return int((partitions_RN[proper_R].max(1, initial=-1) + 1).min())


def is_proper(graph: Graph, colours_N: np.ndarray, k: int | None = None) -> bool:
    return not problems(graph.n, graph.edges_E2.tolist(), colours_N.tolist(), k)


def write_col(path: Path, graph: Graph) -> Path:
    """Write a graph as a DIMACS file."""
    edges = "".join(f"e {u + 1} {v + 1}\n" for u, v in graph.edges_E2.tolist())
    path.write_text(f"p edge {graph.n} {graph.num_edges}\n{edges}", encoding="ascii")
    return path


LARGE = random_graph(np.random.default_rng(0), 250, 0.5)
"""Too large for an exact search; DSATUR needs 36 colours, TabuCol finds 29 at once."""
