"""The best colouring that we know how to find within a time.

What can be settled at once is: by DSATUR's colouring, where it has as few colours as a clique has nodes, or as are
allowed; by a clique that is too large; on small graphs by a short exhaustive search. Otherwise the net colours, its
answer is repaired, and TabuCol goes on from there. DSATUR's colouring is given where nothing better is found. Each
answer says whose it is.
"""

from __future__ import annotations

import functools
import math
import operator
import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import torch

from ranks.errors import UserError
from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.exact import searched_upwards
from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.classical.reduction import reduce
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.features import OutOfTime
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.graphs.networkx_graphs import from_networkx
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.search import GraphSearch
from ranks.workloads.graph_coloring.net.weights_file import LoadedNet, load_net
from ranks.workloads.graph_coloring.solving.net_ways import NetWays, Told
from ranks.workloads.graph_coloring.solving.ways import tabucol_descent

EXACT_SHARE, MOST_EXACT_NODES = 0.05, 500
"""Of the budget, for the exhaustive search; and the nodes that may be left, without those coloured last, for it."""
READ_SHARE = 0.05
"""Of the time left: a net that needs more to read the graph is left out, since a round takes it about as long."""


@dataclass(frozen=True)
class Bound:
    """No colouring has fewer colours. `why`: what proves it."""

    colours: int
    why: str


@dataclass(frozen=True)
class Solution:
    """The best colouring found within the time. It is proper where `conflicts` is 0.

    `conflicts`: counted by the checker, which shares no code with the solver. `told`: what the net and the searches
    did; where the net was not used, `without_net` says why. `found_s`: when this colouring was found.
    """

    colours_N: Ints
    conflicts: int
    found_by: str
    found_s: float
    seconds: float
    bound: Bound
    told: Told | None = None
    without_net: str = ""

    @property
    def num_colours(self) -> int:
        return len(np.unique(self.colours_N))

    @property
    def optimal(self) -> bool:
        """Fewer colours are proven impossible."""
        return self.conflicts == 0 and self.num_colours == self.bound.colours

    def proper(self, k: int | None) -> bool:
        """No conflict, and at most `k` colours where that many are allowed."""
        return self.conflicts == 0 and (k is None or self.num_colours <= k)

    def impossible(self, k: int | None) -> bool:
        """It is proven that `k` colours cannot do."""
        return k is not None and k < self.bound.colours

    def settled(self, k: int | None) -> bool:
        """A search could find nothing more."""
        return self.optimal or self.impossible(k) or (k is not None and self.proper(k))


def by_dsatur(graph: Graph) -> Solution:
    """DSATUR alone, and a clique beside it."""
    return checked(graph, _by_dsatur(graph))


def _by_dsatur(graph: Graph) -> Solution:
    begin = time.perf_counter()
    colours_N = dsatur(graph)
    found_s = time.perf_counter() - begin
    clique = len(greedy_clique(graph))
    bound = Bound(clique, f"a clique of {clique} nodes")
    spent_s = time.perf_counter() - begin
    return Solution(colours_N, graph.conflicts(colours_N), "DSATUR", found_s, spent_s, bound)


def checked(graph: Graph, solution: Solution) -> Solution:
    """The solution with its conflicts as the independent checker counts them."""
    edges = zip(*graph.edges_E2.T.tolist(), strict=True)
    return replace(solution, conflicts=len(problems(graph.n, edges, solution.colours_N.tolist(), None)))


def by_net(graph: Graph, net: LoadedNet, *, k: int | None, budget_s: float, seed: int) -> Solution:
    """Without `k` the fewest colours within the budget; with it a colouring of at most k colours, or the best try."""
    begin = time.perf_counter()

    def now(solution: Solution) -> Solution:
        return replace(checked(graph, solution), seconds=time.perf_counter() - begin)

    known = _by_dsatur(graph)
    greedy_s = known.seconds
    if not known.settled(k):
        known = exhaustively(graph, known, k, begin, EXACT_SHARE * budget_s)
    if known.settled(k):
        return now(replace(known, without_net="not needed"))
    begin += _warm_up()  # what the first graph of a process would pay for all
    left_s = budget_s - (time.perf_counter() - begin)
    if left_s <= greedy_s:
        return now(replace(known, without_net="no time was left"))
    if greedy_s > READ_SHARE * left_s:  # it reads the graph slower than DSATUR does
        found = by_tabucol(graph, known.bound, k, left_s, seed)
    else:
        found = searched(graph, net, known.bound, k, left_s, seed)
    found = replace(found, found_s=found.found_s + budget_s - left_s)
    fewer = k is None and known.num_colours < found.num_colours
    if found.proper(k) and not fewer:
        return now(found)
    if known.proper(k):
        return now(replace(known, told=found.told, without_net=found.without_net))
    return now(found)


def by_net_alone(graph: Graph, net: LoadedNet, *, k: int | None, budget_s: float, seed: int) -> Solution:
    """The net and its repair, and nothing classical beside them but the clique that says where to stop."""
    _warm_up()
    ways = NetWays(net.model)
    answer = ways.repaired(graph, budget_s, seed, k)
    clique = len(greedy_clique(graph))
    found_s = answer.seconds if answer.found_s is None else answer.found_s
    found = Solution(
        answer.colours_N,
        answer.conflicts,
        ways.told.found_by,
        found_s,
        answer.seconds,
        Bound(clique, f"a clique of {clique} nodes"),
        ways.told,
    )
    return checked(graph, found)


def _warm_up() -> float:
    """The seconds that it takes to load compiled code and to wake torch; almost none after the first time."""
    begin = time.perf_counter()
    _try_once()
    return time.perf_counter() - begin


@functools.cache
def _try_once() -> None:
    model = ColouringNet(width=4, encoder_width=4).eval()
    GraphSearch(model, Graph.of(3, [(0, 1), (1, 2)]), torch.device("cpu")).run(2, 0, range(1), 1)


def exhaustively(graph: Graph, known: Solution, k: int | None, begin: float, seconds: float) -> Solution:
    """What an exhaustive search adds until `seconds` after `begin`: a colouring with the fewest colours or with `k`,
    a better bound, or nothing."""
    low, high = (known.bound.colours, known.num_colours) if k is None else (k, k + 1)
    if reduce(graph, low).core.n > MOST_EXACT_NODES:
        return known
    low, colours_N = searched_upwards(graph, low, high, lambda: time.perf_counter() - begin > seconds)
    proven = k is None or low > k
    if proven and low > known.bound.colours:
        known = replace(known, bound=Bound(low, f"an exhaustive search with {low - 1} colours found none"))
    if colours_N is None:
        return known
    found_s = time.perf_counter() - begin
    return Solution(colours_N, graph.conflicts(colours_N), "exhaustive search", found_s, found_s, known.bound)


def searched(graph: Graph, net: LoadedNet, bound: Bound, k: int | None, budget_s: float, seed: int) -> Solution:
    """The pipeline of the net; without it, TabuCol alone, where the net could not even read the graph in time."""
    begin = time.perf_counter()
    ways = NetWays(net.model)
    try:
        GraphSearch(net.model, graph, ways.device, lambda: time.perf_counter() - begin > READ_SHARE * budget_s)
    except OutOfTime:
        left_s = budget_s - (time.perf_counter() - begin)
        found = by_tabucol(graph, bound, k, left_s, seed)
        return replace(found, found_s=found.found_s + budget_s - left_s)
    spent_s = time.perf_counter() - begin
    answer = ways.pipeline(graph, budget_s - spent_s, seed, k)
    found_by = ways.told.found_by
    if answer.conflicts == 0 and found_by == Told().found_by:
        found_by = "a greedy colouring"  # the time was over before a first try
    return Solution(
        answer.colours_N,
        graph.conflicts(answer.colours_N),
        found_by,
        spent_s + (answer.seconds if answer.found_s is None else answer.found_s),
        spent_s + answer.seconds,
        bound,
        ways.told,
    )


def by_tabucol(graph: Graph, bound: Bound, k: int | None, budget_s: float, seed: int) -> Solution:
    """TabuCol from DSATUR's colouring downwards, or from a random one with `k` colours, where there is no time for the
    net."""
    if k is None:
        answer = tabucol_descent(graph, budget_s, seed)
        colours_N, found_s, seconds = answer.colours_N, answer.found_s or answer.seconds, answer.seconds
    else:
        reduced = reduce(graph, k)
        result = tabucol(reduced.core, k, seed, max_s=budget_s)
        colours_N, found_s, seconds = reduced.extend(result.colours_N), result.seconds, result.seconds
    without = f"to read the graph alone would take it more than {READ_SHARE:.0%} of the time"
    return Solution(colours_N, graph.conflicts(colours_N), "TabuCol", found_s, seconds, bound, without_net=without)


@dataclass(frozen=True)
class NamedSolution:
    """A colouring of a networkx graph: `colors` maps each node to 0..num_colors - 1. `found_by`: DSATUR, exhaustive
    search, or the part of the net's pipeline."""

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
    where no colouring with `k` colours was found. Raises UserError for self-loops and empty graphs, and where `k`,
    `budget_s` or `seed` is no such number.
    """
    if k is not None:
        k = whole("k", k)
        if k < 1:
            raise UserError(f"k={k}", "a colouring needs at least one colour", "give k=1 or more")
    if isinstance(budget_s, bool) or not isinstance(budget_s, Real) or not 0 < float(budget_s) < math.inf:
        raise UserError(f"budget_s={budget_s!r}", "a search needs time", "give a positive number of seconds")
    seed = whole("seed", seed)
    graph, nodes = from_networkx(G)
    net = load_net(run)
    found = by_net(graph, net, k=k, budget_s=float(budget_s), seed=seed)
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


def whole(name: str, value: Any) -> int:
    """A whole number of any kind. Raises UserError."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise UserError(f"{name}={value!r}", f"a {type(value).__name__}", f"give a whole number, such as {name}=3")
