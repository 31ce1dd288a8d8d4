"""`solve_many` in Python: colour many graphs at once, on all cores.

Legend: B graphs, N nodes of all graphs, E edges of all graphs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.errors import UserError
from ranks.workloads.graph_coloring.classical.batch import colour_graphs
from ranks.workloads.graph_coloring.classical.tabucol import PROGRESS
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.graphs.networkx_graphs import from_networkx
from ranks.workloads.graph_coloring.solving.budget import integer

FIRST_MOVES_PER_NODE = 20
"""Moves of TabuCol per node in the first pass; each further pass makes twice as many."""
MOVES_PER_CALL = 50_000
"""Moves of one compiled call, for one graph or several: some hundredths of a second."""


@dataclass(frozen=True)
class ManySolutions:
    """A proper colouring of each graph.

    `colours`: for each graph int64[n], in the order of its nodes. `num_colours_B`: the colours used.
    `clique_B`: the size of a clique, a lower bound. `found_B`: whether at most k colours are used;
    true for all without k. `passes`: over the graphs that were not settled. `seconds`: wall time.
    """

    colours: list[Ints]
    num_colours_B: Ints
    clique_B: Ints
    found_B: npt.NDArray[np.bool_]
    passes: int
    seconds: float


def solve_many(
    graphs: Iterable[Any], k: int | None = None, *, budget_s: float = 10.0, passes: int | None = None, seed: int = 0
) -> ManySolutions:
    """Colours each graph with the fewest colours found, or with at most `k`.

    `graphs`: networkx graphs, or `Graph`. All cores work for `budget_s` seconds at most, the
    conversion of networkx graphs included; every graph gets at least DSATUR's colouring. A pass
    gives each graph that is not settled a search twice as long as the pass before; with `passes`,
    and time for them, the result depends on the other arguments only. A graph is settled if a clique
    proves its colouring optimal, or if it has at most `k` colours. Raises UserError.
    """
    start_s = time.perf_counter()
    k, seed = None if k is None else integer("k", k), integer("seed", seed)
    if k is not None and k < 1:
        raise UserError(f"k={k}", "a colouring needs at least one colour", "give k=1 or more")
    plain = [graph if isinstance(graph, Graph) else from_networkx(graph)[0] for graph in graphs]
    first_node_B = np.cumsum([0, *(graph.n for graph in plain)])
    first_edge_B = np.cumsum([0, *(graph.num_edges for graph in plain)])
    edges_E2 = np.concatenate([np.zeros((0, 2), np.int64), *(graph.edges_E2 for graph in plain)])
    colours_N, used_B = np.zeros(first_node_B[-1], np.int64), np.zeros(len(plain), np.int64)
    clique_B, only_k = np.zeros(len(plain), np.int64), k or 0
    number, left_B = 0, np.arange(len(plain))

    def colour(chosen: Ints) -> None:
        if number and over():
            return
        moves_per_node = FIRST_MOVES_PER_NODE << number >> 1 if number else 0
        colour_graphs(
            first_node_B,
            first_edge_B,
            edges_E2,
            chosen,
            only_k,
            seed + number,
            moves_per_node,
            colours_N,
            used_B,
            clique_B,
            np.zeros(1, PROGRESS),
        )

    def over() -> bool:
        return time.perf_counter() - start_s >= budget_s

    with ThreadPoolExecutor(available_cores()) as pool:
        while len(left_B) and (number == 0 or not over()) and (passes is None or number <= passes):
            sizes_B = np.diff(first_node_B)[left_B] * (FIRST_MOVES_PER_NODE << number)
            list(pool.map(colour, _parts(left_B, sizes_B)))
            left_B = np.flatnonzero(used_B > np.maximum(clique_B, only_k))
            number += 1
    colours = np.split(colours_N, first_node_B[1:-1]) if plain else []
    found_B = used_B <= (k or len(colours_N))
    return ManySolutions(colours, used_B, clique_B, found_B, max(0, number - 1), time.perf_counter() - start_s)


def _parts(left_B: Ints, moves_B: Ints) -> Sequence[Ints]:
    """The graphs in parts of about MOVES_PER_CALL moves."""
    part_B = np.cumsum(moves_B) // MOVES_PER_CALL
    return np.split(left_B, np.flatnonzero(np.diff(part_B)) + 1)
