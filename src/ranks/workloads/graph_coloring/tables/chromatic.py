"""The chromatic number: the net's estimate beside what it costs little to know.

Graphs of at most 60 nodes whose number is proven: of the training families, drawn with a data seed that no training
uses; and of families that no training shows. Graphs that are isomorphic to one that the net was trained on are left
out. Each way names one whole number for each graph.

Legend: G graphs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from ranks.engine.sharding import rng
from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.config import DataConfig
from ranks.workloads.graph_coloring.data.build import prepare
from ranks.workloads.graph_coloring.data.dataset import GraphDataset
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.rows import encode
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from ranks.workloads.graph_coloring.solving.estimate import bounded_estimate
from ranks.workloads.graph_coloring.tables.training_graphs import TrainingGraphs

MOST_NODES, DATA_SEED = 60, 2026
NUM_GRAPHS, NUM_GRAPHS_QUICK = 1000, 400
"""Of each set; ways differ by two points, which fewer graphs do not tell apart."""
TABU_MOVES = 500
"""Of the search with each number of colours."""
EXACT_BAR, ERROR_BAR = 0.70, 0.35
ALONE, BOUNDED = "net alone, rounded", "net, between clique and DSATUR"
MEAN, CLIQUE, DSATUR = "one number for all: the training's mean", "clique found", "DSATUR"
RIVALS = (MEAN, CLIQUE, DSATUR)
"""What the net must beat."""
HALFWAY = "halfway from clique to DSATUR, no net"
"""Rounded down: what the bounds are worth alone."""
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ChromaticRow:
    """One way on one set of graphs. `exact`: share with the right number; `error`: mean absolute error; `cpu_s`: CPU
    seconds for each graph; the net takes all graphs of the set side by side, their features being stored."""

    families: str
    way: str
    graphs: int
    exact: float
    error: float
    cpu_s: float
    bar: str | None = None
    passed: bool | None = None


@dataclass(frozen=True)
class HeldOut:
    """What is asked of all ways. `dropped`: how many more there were, known to the net."""

    stored: GraphDataset
    chosen_G: Ints
    dropped: int

    def of_family(self, number: int) -> Ints:
        """int64[G]: those of the chosen ones that are of one family."""
        return self.chosen_G[self.stored.family_G[self.chosen_G] == number]


def held_out(quick: bool, training: TrainingGraphs) -> tuple[HeldOut, HeldOut]:
    """(of the training's families, of unseen ones): at most 60 nodes, the number proven, no training graph."""
    count = NUM_GRAPHS_QUICK if quick else NUM_GRAPHS
    data = DataConfig(
        seed=DATA_SEED, train_graphs=count, validation_graphs=1, unseen_graphs=count, max_nodes=MOST_NODES
    )

    def chosen(stored: GraphDataset) -> HeldOut:
        known_G = (stored.low_G == stored.high_G) & (stored.node_counts_G <= MOST_NODES)
        met_G = np.isin(stored.hash_G, training.hash_G)
        return HeldOut(stored, np.flatnonzero(known_G & ~met_G), int((known_G & met_G).sum()))

    return chosen(load(prepare(data, "train"))), chosen(load(prepare(data, "unseen")))


def chromatic_rows(
    model: ColouringNet, training: TrainingGraphs, seen: HeldOut, unseen: HeldOut
) -> tuple[list[ChromaticRow], list[ChromaticRow]]:
    """(rows of the training families, rows of the unseen families, together and one by one), with bars."""
    rows = _rows("all that training shows", model, training, seen.stored, seen.chosen_G)
    others = _judged(_rows("all that it never shows", model, training, unseen.stored, unseen.chosen_G), (BOUNDED,))
    for number, family in enumerate(unseen.stored.families):
        chosen_G = unseen.of_family(number)
        if len(chosen_G):
            others += _rows(family, model, training, unseen.stored, chosen_G)
    return _judged(rows, (ALONE, BOUNDED)), others


def _rows(
    families: str, model: ColouringNet, training: TrainingGraphs, stored: GraphDataset, chosen_G: Ints
) -> list[ChromaticRow]:
    right_G = stored.high_G[chosen_G].astype(np.float64)
    graphs = [stored.graph(g) for g in chosen_G.tolist()]

    def row(way: str, numbers: Callable[[], Numbers]) -> ChromaticRow:
        begin = time.process_time()
        off_G = np.abs(numbers() - right_G)
        cpu_s = (time.process_time() - begin) / len(graphs)
        return ChromaticRow(families, way, len(graphs), float((off_G == 0).mean()), float(off_G.mean()), cpu_s)

    def each(number: Callable[[Graph], float]) -> Callable[[], Numbers]:
        return lambda: np.array([float(number(graph)) for graph in graphs])

    def bounded() -> Numbers:
        raw_G = estimates(model, stored, chosen_G)
        return np.array([bounded_estimate(g, raw) for g, raw in zip(graphs, raw_G.tolist(), strict=True)]).round()

    return [
        row(ALONE, lambda: estimates(model, stored, chosen_G).round()),
        row(BOUNDED, bounded),
        row(MEAN, each(lambda _: round(training.mean))),
        row(CLIQUE, each(lambda graph: len(greedy_clique(graph)))),
        row(DSATUR, each(lambda graph: num_colours(dsatur(graph)))),
        row(HALFWAY, each(lambda graph: (len(greedy_clique(graph)) + num_colours(dsatur(graph))) // 2)),
        row(f"TabuCol, {TABU_MOVES} moves a k", each(_by_tabucol)),
    ]


def _by_tabucol(graph: Graph) -> float:
    """Colours after TabuCol from DSATUR's number downwards, each number from random colours, to the clique's."""
    k, least = num_colours(dsatur(graph)), len(greedy_clique(graph))
    seed = rng.key(DATA_SEED, "chromatic/tabucol", 0) & (2**63 - 1)
    while k > least and tabucol(graph, k - 1, seed, max_moves=TABU_MOVES).conflicts == 0:
        k -= 1
    return k


def estimates(model: ColouringNet, stored: GraphDataset, chosen_G: Ints) -> Numbers:
    """float64[G]: what the net's reader says."""
    graphs = DeviceGraphs(stored, 0, torch.device("cpu"))
    with torch.no_grad():
        parts = [encode(model, graphs.gather(ids)).chromatic_B for ids in torch.from_numpy(chosen_G).split(200)]
    return torch.cat(parts).double().numpy()


def _judged(rows: list[ChromaticRow], ways: tuple[str, ...]) -> list[ChromaticRow]:
    bar = f"exact >= {EXACT_BAR:.0%}, error < {ERROR_BAR}, better than mean, clique, DSATUR"
    rivals = [row for row in rows if row.way in RIVALS]
    most, least = max(row.exact for row in rivals), min(row.error for row in rivals)

    def judged(row: ChromaticRow) -> ChromaticRow:
        passed = row.exact >= EXACT_BAR and row.error < ERROR_BAR and row.exact > most and row.error < least
        return replace(row, bar=bar, passed=passed) if row.way in ways else row

    return [judged(row) for row in rows]
