"""Graphs of families and sizes that are not in training, coloured with their chromatic number of
colours.

The network and the random starts have the same number of tries. They do not have the same time: a
try of the network takes far longer.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch

from ranks.engine.sharding import rng
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.data.dataset import GraphDataset
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.search import GraphSearch
from ranks.workloads.graph_coloring.solving.search.restarts import random_starts, repair_until_proper

SEED, TRIES, ROUNDS = 2026, 4, 64


@dataclass(frozen=True)
class UnseenRow:
    """How many graphs each method colours properly with the chromatic number of colours."""

    family: str
    nodes: str
    """The sizes of the smallest and the largest graph: '10 to 112'."""
    graphs: int
    net_raw: int
    """Solved by the network without repair."""
    net_repaired: int
    """Solved by the repair of these tries."""
    random_repaired: int
    """Solved by the repair of random colourings."""
    dsatur: int


def unseen_rows(model: ColouringNet, dataset: GraphDataset, max_graphs: int) -> list[UnseenRow]:
    """A row per family: its first `max_graphs` graphs with a proven chromatic number, of any size."""
    known_G = dataset.low_G == dataset.high_G
    rows: list[UnseenRow] = []
    for number, family in enumerate(dataset.families):
        chosen_G = np.flatnonzero(known_G & (dataset.family_G == number))[:max_graphs]
        if not len(chosen_G):
            continue
        solved_GM = [_solved(model, dataset.graph(g), int(dataset.high_G[g]), g) for g in chosen_G.tolist()]
        nodes_G = dataset.node_counts_G[chosen_G]
        rows.append(
            UnseenRow(family, f"{nodes_G.min()} to {nodes_G.max()}", len(chosen_G), *np.sum(solved_GM, axis=0).tolist())
        )
    return rows


def _solved(model: ColouringNet, graph: Graph, k: int, item: int) -> tuple[bool, bool, bool, bool]:
    """Whether each method finds a proper colouring with k colours, in the order of `UnseenRow`."""
    search, seed = GraphSearch(model, graph, torch.device("cpu")), rng.key(SEED, "unseen", item) & (2**63 - 1)
    tried: list[Ints] = []
    raw = False
    while len(tried) < TRIES and not raw:
        tries = search.run(k, seed, range(len(tried), len(tried) + 1), ROUNDS)
        tried.append(tries.colours_SN[0])
        raw = int(tries.conflicts_S[0]) == 0
    repaired = repair_until_proper(graph, k, seed, tried).conflicts == 0
    starts = itertools.islice(random_starts(graph.n, k, seed), TRIES)
    random = repair_until_proper(graph, k, seed, starts).conflicts == 0
    return raw, repaired, random, num_colours(dsatur(graph)) == k
