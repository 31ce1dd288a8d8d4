"""Colours on families and sizes that training never shows, each graph with as many as its chromatic number.

Everything that starts from something random has the same few tries, each of 64 rounds (net) or from random colours;
that is no equal time, since a try of the net takes far longer.
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
from ranks.workloads.graph_coloring.solving.restarts import random_starts, repair_until_proper

SEED, TRIES, ROUNDS = 2026, 4, 64
GRAPHS, GRAPHS_QUICK = 20, 2
"""Of each family."""


@dataclass(frozen=True)
class UnseenRow:
    """How many graphs of a family each way colours properly with as many colours as their chromatic number."""

    family: str
    nodes: str
    """From the smallest to the largest."""
    graphs: int
    net_raw: int
    net_repaired: int
    random_repaired: int
    dsatur: int


def unseen_rows(model: ColouringNet, stored: GraphDataset, quick: bool) -> list[UnseenRow]:
    """A row for each family: its first graphs, of any size, whose chromatic number is proven."""
    known_G = stored.low_G == stored.high_G
    rows: list[UnseenRow] = []
    for number, family in enumerate(stored.families):
        chosen_G = np.flatnonzero(known_G & (stored.family_G == number))[: GRAPHS_QUICK if quick else GRAPHS]
        if not len(chosen_G):
            continue
        counts_GW = [_coloured(model, stored.graph(g), int(stored.high_G[g]), g) for g in chosen_G.tolist()]
        nodes_G = stored.node_counts_G[chosen_G]
        rows.append(
            UnseenRow(family, f"{nodes_G.min()} to {nodes_G.max()}", len(chosen_G), *np.sum(counts_GW, axis=0).tolist())
        )
    return rows


def _coloured(model: ColouringNet, graph: Graph, k: int, item: int) -> tuple[bool, bool, bool, bool]:
    """Whether each way, in the order of the columns, finds a proper colouring with k colours."""
    search, seed = GraphSearch(model, graph, torch.device("cpu")), rng.key(SEED, "unseen", item) & (2**63 - 1)
    tried: list[Ints] = []
    raw = False
    while len(tried) < TRIES and not raw:
        tries = search.run(k, seed, range(len(tried), len(tried) + 1), ROUNDS)
        tried.append(tries.colours_SN[0])
        raw = int(tries.conflicts_S[0]) == 0
    repaired = repair_until_proper(graph, k, seed, tried).conflicts == 0
    random = (
        repair_until_proper(graph, k, seed, itertools.islice(random_starts(graph.n, k, seed), TRIES)).conflicts == 0
    )
    return raw, repaired, random, num_colours(dsatur(graph)) == k
