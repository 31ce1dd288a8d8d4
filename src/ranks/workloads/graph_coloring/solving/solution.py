"""The best colouring that we know how to find within a time: the net, its repair, TabuCol from the net's colouring.

DSATUR's colouring is made too, in milliseconds, and given only where it is better: then the answer says so.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranks.errors import UserError
from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.graphs.networkx_graphs import from_networkx
from ranks.workloads.graph_coloring.net.weights_file import LoadedNet, load_net
from ranks.workloads.graph_coloring.solving.net_ways import NetWays, Told


@dataclass(frozen=True)
class Solution:
    """The best colouring found within the time. It is proper where `conflicts` is 0.

    `conflicts`: counted by the checker, which shares no code with the solver. `told`: what the net and the searches
    did, none where only DSATUR was asked. `found_s`: when this colouring was found.
    """

    colours_N: Ints
    conflicts: int
    found_by: str
    found_s: float
    seconds: float
    told: Told | None
    optimal: bool = False
    """A clique proves that fewer colours cannot do."""

    @property
    def num_colours(self) -> int:
        return len(np.unique(self.colours_N))

    def proper(self, k: int | None) -> bool:
        """No conflict, and at most `k` colours where that many are allowed."""
        return self.conflicts == 0 and (k is None or self.num_colours <= k)


def by_dsatur(graph: Graph) -> Solution:
    """DSATUR alone."""
    begin = time.perf_counter()
    colours_N = dsatur(graph)
    spent_s = time.perf_counter() - begin
    return Solution(colours_N, conflicts(graph, colours_N), "DSATUR", spent_s, spent_s, None)


def by_net(graph: Graph, net: LoadedNet, *, k: int | None, budget_s: float, seed: int) -> Solution:
    """Without `k` the fewest colours within the budget; with it a colouring of at most k colours, or the best try."""
    begin = time.perf_counter()
    classical = by_dsatur(graph)
    ways = NetWays(net.model)
    answer = ways.pipeline(graph, budget_s - classical.seconds, seed, k)
    found = Solution(
        answer.colours_N,
        conflicts(graph, answer.colours_N),
        ways.told.found_by,
        answer.found_s or answer.seconds,
        time.perf_counter() - begin,
        ways.told,
        optimal=answer.optimal,
    )
    fewer = k is None and classical.num_colours < found.num_colours
    if classical.proper(k) and (fewer or not found.proper(k)):
        return replace(classical, seconds=found.seconds, told=ways.told, optimal=is_optimal(graph, classical))
    return found


def is_optimal(graph: Graph, solution: Solution) -> bool:
    """Whether a clique of as many nodes was found."""
    return solution.conflicts == 0 and solution.num_colours == len(greedy_clique(graph))


def conflicts(graph: Graph, colours_N: Ints) -> int:
    """Conflicting edges, by the independent checker."""
    return len(problems(graph.n, graph.edges_E2.tolist(), colours_N.tolist(), None))


@dataclass(frozen=True)
class NamedSolution:
    """A colouring of a networkx graph: `colors` maps each node to 0..num_colors - 1. `found_by`: DSATUR, or the part of
    the net's pipeline."""

    colors: dict[Hashable, int]
    num_colors: int
    found_by: str
    seconds: float
    optimal: bool
    weights: str


def solve(
    G: Any, k: int | None = None, *, budget_s: float = 10.0, seed: int = 0, run: str | None = None
) -> NamedSolution | None:
    """Colour a networkx graph: with the fewest colours found within `budget_s`, or with at most `k`.

    `run`: a run's name or folder, or a model.safetensors file; without it the net that ships with the package. None
    where no colouring with `k` colours was found. Raises UserError for self-loops and empty graphs.
    """
    if k is not None and k < 1:
        raise UserError(f"k={k}", "a colouring needs at least one colour", "give k=1 or more")
    if not budget_s > 0:
        raise UserError(f"budget_s={budget_s}", "a search needs time", "give a positive number of seconds")
    graph, nodes = from_networkx(G)
    net = load_net(run)
    found = by_net(graph, net, k=k, budget_s=budget_s, seed=seed)
    if not found.proper(k):
        return None
    _, class_N = np.unique(found.colours_N, return_inverse=True)
    return NamedSolution(
        dict(zip(nodes, class_N.tolist(), strict=True)),
        found.num_colours,
        found.found_by,
        found.seconds,
        found.optimal,
        f"{net.name}, sha256 {net.sha256}",
    )
