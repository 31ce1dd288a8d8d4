"""The test graphs of RandCSPBench, by cell, and the published conflicts of each.

A cell has the graphs of one number of colours, one size and one mean degree.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import networkx
import numpy as np

from ranks.workloads.graph_coloring.graphs.graph import Graph

PER_CELL = 400
SIZES = (16, 32, 64, 128, 256)
DEGREES = {3: tuple(round(3.32 + 0.18 * i, 2) for i in range(10)), 5: tuple(round(9.9 + 0.4 * i, 1) for i in range(10))}
PUBLISHED = ("rpi_gnn", "querysat", "sa", "bp", "fms_short", "fms_long")


@dataclass(frozen=True, order=True)
class Cell:
    """All graphs of one number of colours, size and mean degree."""

    nodes: int
    colours: int
    degree: float

    @property
    def edges(self) -> int:
        return round(self.degree * self.nodes / 2)


@dataclass(frozen=True, order=True)
class Part:
    """Some graphs of a cell, without a gap: `count` of them from `first` on, counted from 0."""

    cell: Cell
    first: int
    count: int


@dataclass(frozen=True)
class TestGraph:
    """`key`: (nodes, edges, id), as in the published tables; ids count from 1."""

    key: tuple[int, int, int]
    graph: Graph


def cells(sizes: Iterable[int] = SIZES, colours: Iterable[int] = (3, 5)) -> list[Cell]:
    """The cells, smallest graphs first."""
    return sorted(Cell(n, k, degree) for n in sizes for k in colours for degree in DEGREES[k])


def graphs_of(cell: Cell, count: int = PER_CELL) -> list[TestGraph]:
    """The first graphs of a cell, as their authors make them: every cell starts with seed 1 again."""
    random.seed(1)
    n, m = cell.nodes, cell.edges
    made = (Graph.of(n, list(networkx.gnm_random_graph(n, m).edges())) for _ in range(count))
    return [TestGraph((n, m, number), graph) for number, graph in enumerate(made, start=1)]


def parts_of(cell: Cell, graphs: int, size: int) -> list[Part]:
    """The first graphs of a cell, in parts of at most `size`."""
    return [Part(cell, first, min(size, graphs - first)) for first in range(0, graphs, size)]


def sha256_of(tests: Iterable[TestGraph]) -> str:
    """The hash of the keys and edges of graphs."""
    digest = hashlib.sha256()
    for test in tests:
        digest.update(np.array([*test.key], "<i8").tobytes() + test.graph.edges_E2.astype("<i8").tobytes())
    return digest.hexdigest()


def read_published(folder: Path, k: int) -> dict[tuple[int, int, int], dict[str, int]]:
    """The conflicts that each published method left, by graph."""
    with gzip.open(folder / f"{k}col_published.csv.gz", "rt", newline="") as file:
        return {
            (int(row["N"]), int(row["M"]), int(row["id"])): {name: int(float(row[name])) for name in PUBLISHED}
            for row in csv.DictReader(file)
        }
