"""The chromatic number: the net's estimate beside what it costs little to know.

Graphs of at most 60 nodes whose number is proven: of the training families, drawn with a data seed that no training
uses; and of families that no training shows. Each way names one whole number for each graph.

Legend: G graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.config import DataConfig
from ranks.workloads.graph_coloring.data.build import prepare
from ranks.workloads.graph_coloring.data.parts import Stored, load
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.rows import read
from ranks.workloads.graph_coloring.net.stored import StoredGraphs

MOST_NODES, DATA_SEED = 60, 2026
NUM_GRAPHS, NUM_GRAPHS_QUICK = 1000, 60
EXACT_BAR, ERROR_BAR = 0.70, 0.35
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ChromaticRow:
    """One way on one set of graphs. `exact`: share with the right number; `error`: mean absolute error."""

    families: str
    way: str
    graphs: int
    exact: float
    error: float
    bar: str | None = None
    passed: bool | None = None


def chromatic_rows(model: ColouringNet, quick: bool) -> tuple[list[ChromaticRow], list[ChromaticRow]]:
    """(rows of the training families, with bars; rows of the unseen families, together and one by one)."""
    count = NUM_GRAPHS_QUICK if quick else NUM_GRAPHS
    data = DataConfig(
        seed=DATA_SEED, train_graphs=count, validation_graphs=1, unseen_graphs=count, max_nodes=MOST_NODES
    )
    seen, unseen = (load(prepare(data, purpose)) for purpose in ("train", "unseen"))
    rows = _rows("all that training shows", model, seen, _proven(seen))
    others = _rows("all that it never shows", model, unseen, _proven(unseen))
    for number, family in enumerate(unseen.families):
        chosen = _proven(unseen, number)
        if len(chosen):
            others += _rows(family, model, unseen, chosen)
    return _judged(rows), others


def _proven(stored: Stored, family: int | None = None) -> Ints:
    """int64[G]: the graphs of at most 60 nodes whose number is proven."""
    known_G = (stored.low_G == stored.high_G) & (stored.node_counts_G <= MOST_NODES)
    return np.flatnonzero(known_G if family is None else known_G & (stored.family_G == family))


def _rows(families: str, model: ColouringNet, stored: Stored, chosen_G: Ints) -> list[ChromaticRow]:
    right_G = stored.high_G[chosen_G].astype(np.float64)

    def each(bound: Callable[[Graph], int]) -> Numbers:
        return np.array([float(bound(stored.graph(g))) for g in chosen_G.tolist()])

    ways = {
        "net, rounded": estimates(model, stored, chosen_G).round(),
        "one number for all: their mean": np.full(len(chosen_G), right_G.mean().round()),
        "clique found": each(lambda graph: len(greedy_clique(graph))),
        "DSATUR": each(lambda graph: num_colours(dsatur(graph))),
    }
    return [
        ChromaticRow(families, way, len(chosen_G), float((n_G == right_G).mean()), float(np.abs(n_G - right_G).mean()))
        for way, n_G in ways.items()
    ]


def estimates(model: ColouringNet, stored: Stored, chosen_G: Ints) -> Numbers:
    """float64[G]: what the net's reader says."""
    graphs = StoredGraphs(stored, 0, torch.device("cpu"))
    with torch.no_grad():
        parts = [read(model, graphs.gather(ids)).chromatic_B for ids in torch.from_numpy(chosen_G).split(200)]
    return torch.cat(parts).double().numpy()


def _judged(rows: list[ChromaticRow]) -> list[ChromaticRow]:
    net, *others = rows
    bar = f"exact >= {EXACT_BAR:.0%}, error < {ERROR_BAR}, better than each other way"
    best = net.exact > max(row.exact for row in others) and net.error < min(row.error for row in others)
    passed = net.exact >= EXACT_BAR and net.error < ERROR_BAR and best
    return [replace(net, bar=bar, passed=passed), *others]
