"""The chromatic number: the network's estimate compared with cheap classical estimates.

The graphs have at most 60 nodes and a proven chromatic number. Some are of the training families,
drawn with a data seed that training does not use; others are of families that are not in training.
Graphs that are isomorphic to a training graph are excluded. Each method gives one integer for each
graph.

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
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.dataset import GraphDataset
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.rows import encode
from ranks.workloads.graph_coloring.solving.search.estimate import bounded_estimate
from ranks.workloads.graph_coloring.tables.training_graphs import TrainingGraphs

MAX_NODES, DATA_SEED = 60, 2026
TABU_MOVES = 500
"""The limit of moves for each number of colours."""
EXACT_BAR, ERROR_BAR = 0.70, 0.35
ALONE, BOUNDED = "net alone, rounded", "net, between clique and DSATUR"
MEAN, CLIQUE, DSATUR = "one number for all: the training's mean", "clique found", "DSATUR"
RIVALS = (MEAN, CLIQUE, DSATUR)
"""The methods that the network must beat."""
HALFWAY = "halfway from clique to DSATUR, no net"
"""The mean of both bounds, rounded down: an estimate that uses only the bounds."""
Numbers = npt.NDArray[np.float64]
Estimate = Callable[[GraphDataset, Ints], Numbers]
"""(data set, graph ids int64[G]) -> estimated chromatic numbers float64[G]."""


@dataclass(frozen=True)
class ChromaticRow:
    """The result of one method on one set of graphs."""

    families: str
    method: str
    graphs: int
    exact: float
    """The share of graphs with the right number."""
    error: float
    """The mean absolute error."""
    cpu_s: float
    """CPU seconds per graph. The network takes large batches, with stored features."""
    bar: str | None = None
    """The requirement; None for a method without one."""
    passed: bool | None = None


@dataclass(frozen=True)
class HeldOut:
    """The test graphs of one data set. `excluded`: how many are isomorphic to a training graph."""

    dataset: GraphDataset
    chosen_G: Ints
    excluded: int

    def of_family(self, number: int) -> Ints:
        """int64[G]: the ids of the chosen graphs of one family."""
        return self.chosen_G[self.dataset.family_G[self.chosen_G] == number]


def held_out(num_graphs: int, training: TrainingGraphs, max_nodes: int = MAX_NODES) -> tuple[HeldOut, HeldOut]:
    """The test graphs of (the training families, unseen families), with a proven chromatic number.

    `num_graphs`: the size of each data set, of which some graphs are excluded.
    """
    data = DataConfig(
        seed=DATA_SEED, train_graphs=num_graphs, validation_graphs=1, unseen_graphs=num_graphs, max_nodes=max_nodes
    )

    def chosen(dataset: GraphDataset) -> HeldOut:
        known_G = (dataset.low_G == dataset.high_G) & (dataset.node_counts_G <= max_nodes)
        trained_G = np.isin(dataset.hash_G, training.hash_G)
        return HeldOut(dataset, np.flatnonzero(known_G & ~trained_G), int((known_G & trained_G).sum()))

    return chosen(load(prepare(data, "train"))), chosen(load(prepare(data, "unseen")))


def chromatic_rows(
    estimate: Estimate, training: TrainingGraphs, seen: HeldOut, unseen: HeldOut
) -> tuple[list[ChromaticRow], list[ChromaticRow]]:
    """The rows of (the training families, the unseen families) with their bars.

    The unseen families come together first, then one by one. `estimate`: see `net_estimate`.
    """
    rows = _rows("all training families", estimate, training, seen.dataset, seen.chosen_G)
    others = judged(_rows("all unseen families", estimate, training, unseen.dataset, unseen.chosen_G), (BOUNDED,))
    for number, family in enumerate(unseen.dataset.families):
        chosen_G = unseen.of_family(number)
        if len(chosen_G):
            others += _rows(family, estimate, training, unseen.dataset, chosen_G)
    return judged(rows, (ALONE, BOUNDED)), others


def _rows(
    families: str, estimate: Estimate, training: TrainingGraphs, dataset: GraphDataset, chosen_G: Ints
) -> list[ChromaticRow]:
    """The results of all methods on the chosen graphs, without bars."""
    right_G = dataset.high_G[chosen_G].astype(np.float64)
    graphs = [dataset.graph(g) for g in chosen_G.tolist()]

    def row(method: str, numbers: Callable[[], Numbers]) -> ChromaticRow:
        start_s = time.process_time()
        error_G = np.abs(numbers() - right_G)
        cpu_s = (time.process_time() - start_s) / len(graphs)
        return ChromaticRow(families, method, len(graphs), float((error_G == 0).mean()), float(error_G.mean()), cpu_s)

    def each(number: Callable[[Graph], float]) -> Callable[[], Numbers]:
        return lambda: np.array([float(number(graph)) for graph in graphs])

    def bounded() -> Numbers:
        raw_G = estimate(dataset, chosen_G)
        return np.array([bounded_estimate(g, raw) for g, raw in zip(graphs, raw_G.tolist(), strict=True)]).round()

    return [
        row(ALONE, lambda: estimate(dataset, chosen_G).round()),
        row(BOUNDED, bounded),
        row(MEAN, each(lambda _: round(training.mean))),
        row(CLIQUE, each(lambda graph: len(greedy_clique(graph)))),
        row(DSATUR, each(lambda graph: num_colours(dsatur(graph)))),
        row(HALFWAY, each(lambda graph: (len(greedy_clique(graph)) + num_colours(dsatur(graph))) // 2)),
        row(f"TabuCol, {TABU_MOVES} moves per k", each(_tabucol_colours)),
    ]


def _tabucol_colours(graph: Graph) -> float:
    """The fewest colours of TabuCol, from DSATUR's number down to the clique size.

    Each number of colours starts from random colours. The first failure ends the search.
    """
    k, least = num_colours(dsatur(graph)), len(greedy_clique(graph))
    seed = rng.key(DATA_SEED, "chromatic/tabucol", 0) & (2**63 - 1)
    while k > least and tabucol(graph, k - 1, seed, max_moves=TABU_MOVES).conflicts == 0:
        k -= 1
    return k


def net_estimate(model: ColouringNet, dataset: GraphDataset, chosen_G: Ints) -> Numbers:
    """float64[G]: the network's estimates, not rounded and without bounds."""
    graphs = DeviceGraphs(dataset, 0, torch.device("cpu"))
    with torch.no_grad():
        parts = [encode(model, graphs.gather(ids)).chromatic_B for ids in torch.from_numpy(chosen_G).split(200)]
    return torch.cat(parts).double().numpy()


def judged(rows: list[ChromaticRow], methods: tuple[str, ...]) -> list[ChromaticRow]:
    """The rows with the bar of these methods: the rows of all methods on one set of graphs."""
    bar = f"exact >= {EXACT_BAR:.0%}, error < {ERROR_BAR}, better than mean, clique, DSATUR"
    rivals = [row for row in rows if row.method in RIVALS]
    best_exact, best_error = max(row.exact for row in rivals), min(row.error for row in rivals)

    def with_bar(row: ChromaticRow) -> ChromaticRow:
        enough = row.exact >= EXACT_BAR and row.error < ERROR_BAR
        return replace(row, bar=bar, passed=enough and row.exact > best_exact and row.error < best_error)

    return [with_bar(row) if row.method in methods else row for row in rows]
