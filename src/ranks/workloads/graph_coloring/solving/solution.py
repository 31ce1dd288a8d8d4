"""The result of a search for the best colouring of a graph, with a proof of its lower bound.

Legend: N nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.solving.search.net_solvers import NetReport


@dataclass(frozen=True)
class Bound:
    """A lower bound of the chromatic number. `why`: its proof."""

    colours: int
    why: str


@dataclass(frozen=True)
class Solution:
    """The best colouring found within the time. It is proper only if `conflicts` is 0.

    `conflicts`: counted by the checker, which shares no code with the solvers. `report`: what the
    net and the searches did; if the net was not used, `without_net` says why. `found_s`: when this
    colouring was found. Times are in the unit of the clock: seconds or moves.
    """

    colours_N: Ints
    conflicts: int
    found_by: str
    found_s: float
    seconds: float
    bound: Bound
    report: NetReport | None = None
    without_net: str = ""

    @property
    def num_colours(self) -> int:
        return len(np.unique(self.colours_N))

    @property
    def optimal(self) -> bool:
        """Whether fewer colours are proven impossible."""
        return self.conflicts == 0 and self.num_colours == self.bound.colours

    def proper(self, k: int | None) -> bool:
        """Whether no edge conflicts and, with `k`, at most k colours are used."""
        return self.conflicts == 0 and (k is None or self.num_colours <= k)

    def impossible(self, k: int | None) -> bool:
        """Whether a colouring with `k` colours is proven impossible."""
        return k is not None and k < self.bound.colours

    def settled(self, k: int | None) -> bool:
        """Whether no search could improve the result."""
        return self.optimal or self.impossible(k) or (k is not None and self.proper(k))


def clique_bound(graph: Graph) -> Bound:
    """The lower bound of a greedy clique, whose edges are counted again."""
    clique = greedy_clique(graph)
    ends = int(np.isin(graph.edges_E2, clique).all(1).sum())
    if 2 * ends != len(clique) * (len(clique) - 1):
        raise AssertionError(f"{len(clique)} nodes of a clique have {ends} edges")
    return Bound(len(clique), f"a clique of {len(clique)} nodes")


def verified(graph: Graph, solution: Solution) -> Solution:
    """The solution with its conflicts as the independent checker counts them."""
    edges = zip(*graph.edges_E2.T.tolist(), strict=True)
    return replace(solution, conflicts=len(problems(graph.n, edges, solution.colours_N.tolist(), None)))
