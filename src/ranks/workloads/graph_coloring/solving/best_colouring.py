"""The search for the best colouring within a limit: bounds, an exact search, net, TabuCol, HEAD.

1. DSATUR and a clique. They settle the graph if both have the same number of colours or nodes, if
   DSATUR needs no more colours than allowed, or if the clique is too large.
2. On small graphs a short exact search. What it proves impossible, a SAT solver checks.
3. If the SAT formula is small: TabuCol with fewer and fewer colours until it fails, then the SAT
   solvers.
4. The net, with repair; then TabuCol from that colouring, with fewer and fewer colours. After the
   first failure of TabuCol: HEAD.

The best colouring that was found or given is the result. `Solution.found_by` names the component
that found it. No component is left out because a clock is slow: which ones are used depends on the
graph and the limit only.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import torch

from ranks.engine.distributed.precision import one_thread
from ranks.workloads.graph_coloring.classical.exact import search_upwards
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.classical.reduction import reduce_to_core
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.search import GraphSearch
from ranks.workloads.graph_coloring.net.weights_file import LoadedNet
from ranks.workloads.graph_coloring.solving.budget import WALL, SearchClock
from ranks.workloads.graph_coloring.solving.proof import sat
from ranks.workloads.graph_coloring.solving.search.change_colours import with_fewer_colours
from ranks.workloads.graph_coloring.solving.search.decrease_colours import (
    BY_REDUCTION,
    decrease_colours,
)
from ranks.workloads.graph_coloring.solving.search.head_attempts import HeadAttempts
from ranks.workloads.graph_coloring.solving.search.net_solvers import NetReport, NetSolvers
from ranks.workloads.graph_coloring.solving.solution import Bound, Solution, clique_bound, verified

EXACT_SHARE, MAX_EXACT_NODES = 0.05, 500
"""The exact search gets this share of the budget, if the k-core has at most this many nodes."""
PROOF_SHARE = 0.75
"""The SAT solvers get this share of what is left."""
CHECK_SHARE = 0.25
"""The SAT solvers get this share of what is left to check a proof of the exact search."""
TABUCOL_MOVES_PER_NODE = 1_000
"""Moves of TabuCol before the SAT solvers, per node."""
MOVES_PER_BRANCH_CALL = 2_000
"""Moves that a call of the exact search counts as."""
MAX_ENTRIES_PER_SECOND, MOVES_PER_SECOND = 300_000, 1_000_000
"""The net is left out if the graph has more nodes and directed edges than this, times the seconds."""


@dataclass(frozen=True)
class Limit:
    """How long a search may take: `amount` in the unit of `clock`, from the reading `start` on."""

    amount: float
    clock: SearchClock = WALL
    start: float = 0.0

    @classmethod
    def from_now(cls, amount: float, clock: SearchClock = WALL) -> Limit:
        return cls(amount, clock, clock())

    @property
    def spent(self) -> float:
        return self.clock() - self.start

    @property
    def left(self) -> float:
        return self.amount - self.spent

    @property
    def about_seconds(self) -> float:
        """The limit in seconds; moves are converted at a fixed rate."""
        return self.amount if self.clock.unit == "s" else self.amount / MOVES_PER_SECOND


def by_dsatur(graph: Graph, limit: Limit) -> Solution:
    """The colouring of DSATUR, with the lower bound of a clique."""
    colours_N = dsatur(graph)
    limit.clock.charge(graph.n + 2 * graph.num_edges)
    found_s = limit.spent
    bound = clique_bound(graph)
    return verified(graph, Solution(colours_N, graph.conflicts(colours_N), "DSATUR", found_s, limit.spent, bound))


@one_thread()
def best_colouring(
    graph: Graph, net: LoadedNet, *, k: int | None, limit: Limit, seed: int, given_N: Ints | None = None
) -> Solution:
    """The best colouring within the limit, by all methods.

    With `k`: a colouring with at most k colours, or the one with the fewest conflicts. `given_N`: a
    proper colouring to start from.
    """
    known = by_dsatur(graph, limit)
    if given_N is not None and num_colours(given_N) < known.num_colours:
        known = verified(graph, replace(known, colours_N=given_N, found_by="the given colouring"))
    if not known.settled(k):
        known = by_exact_search(graph, known, k, limit)
    if not known.settled(k):
        known = by_proof(graph, known, k, limit, seed)
    if known.settled(k):
        return replace(known, seconds=limit.spent, without_net="not needed")
    if limit.left <= 0:
        known = known if k is None else with_k_colours(graph, known, k)
        return replace(known, seconds=limit.spent, without_net="no time was left")
    hint_N = known.colours_N if k is None else given_N
    found = by_searches(graph, net, known, k, limit, seed, hint_N)
    found = replace(found, seconds=limit.spent)
    if found.impossible(k) or (found.proper(k) and (k is not None or found.num_colours < known.num_colours)):
        return found
    if known.proper(k):
        return replace(
            known, seconds=found.seconds, bound=found.bound, report=found.report, without_net=found.without_net
        )
    return found


def with_k_colours(graph: Graph, known: Solution, k: int) -> Solution:
    """The answer with k colours, and with conflicts, that a colouring with more colours gives."""
    return verified(graph, replace(known, colours_N=with_fewer_colours(graph, known.colours_N, k)))


@one_thread()
def by_net_alone(graph: Graph, net: LoadedNet, *, k: int | None, limit: Limit, seed: int) -> Solution:
    """The best colouring of the net with repair.

    Nothing classical is used except the clique that ends the search.
    """
    solvers = NetSolvers(net.model, clock=limit.clock)
    before_s = limit.spent
    result = solvers.repaired(graph, limit.left, seed, k)
    found_s = before_s + (result.seconds if result.found_s is None else result.found_s)
    by, bound = solvers.report.found_by, clique_bound(graph)
    solution = Solution(result.colours_N, result.conflicts, by, found_s, limit.spent, bound, solvers.report)
    return verified(graph, solution)


@functools.cache
def warm_up() -> None:
    """Loads torch and compiled code, which no search should pay for."""
    model = ColouringNet(width=4, encoder_width=4).eval()
    GraphSearch(model, Graph.of(3, [(0, 1), (1, 2)]), torch.device("cpu")).run(2, 0, range(1), 1)


def by_exact_search(graph: Graph, known: Solution, k: int | None, limit: Limit) -> Solution:
    """Improves a solution by an exact search for EXACT_SHARE of the limit.

    The search may find a colouring with the fewest colours, or with `k`; or a better lower bound;
    or nothing.
    """
    low, high = (known.bound.colours, known.num_colours) if k is None else (k, k + 1)
    if reduce_to_core(graph, low).core.n > MAX_EXACT_NODES:
        return known

    def stop() -> bool:
        limit.clock.charge(MOVES_PER_BRANCH_CALL)
        return limit.spent > EXACT_SHARE * limit.amount

    low, colours_N = search_upwards(graph, low, high, stop)
    proven = k is None or low > k
    if proven and low > known.bound.colours:
        known = replace(
            known, bound=Bound(low, f"an exact search with {low - 1} colours found none{_check(graph, low - 1, limit)}")
        )
    if colours_N is None:
        return known
    return verified(graph, Solution(colours_N, 0, "exact search", limit.spent, limit.spent, known.bound))


def by_proof(graph: Graph, known: Solution, k: int | None, limit: Limit, seed: int) -> Solution:
    """Improves a solution by TabuCol until it fails, then by the SAT solvers.

    The solution has fewer colours, or a better lower bound; or it is the given one.
    """
    while not known.settled(k) and limit.left > 0:
        colours = known.num_colours - 1 if k is None else k
        if not sat.small_enough(graph, colours):
            break
        reduction = reduce_to_core(graph, colours)
        max_moves, max_s = limit.clock.limits(TABUCOL_MOVES_PER_NODE * graph.n, limit.left)
        found = tabucol(reduction.core, colours, seed, max_moves=max_moves, max_s=max_s)
        limit.clock.charge(found.moves + graph.n)
        colours_N, found_by = reduction.extend(found.colours_N), "TabuCol"
        if found.conflicts:
            try:
                colours_N, found_by = sat.decide(graph, colours, PROOF_SHARE * limit.left, limit.clock), "CaDiCaL"
            except sat.Impossible as proof:
                return replace(known, bound=Bound(colours + 1, proof.why))
            if colours_N is None:
                break
        known = verified(graph, Solution(colours_N, 0, found_by, limit.spent, limit.spent, known.bound))
    return known


def _check(graph: Graph, k: int, limit: Limit) -> str:
    """The words about a second proof that k colours are too few, by the SAT solvers."""
    if not sat.installed():
        return " (not checked: python-sat is not installed)"
    try:
        if sat.decide(graph, k, CHECK_SHARE * limit.left, limit.clock) is not None:
            raise AssertionError(f"an exact search finds no colouring with {k} colours, and CaDiCaL finds one")
    except sat.Impossible:
        return ", and CaDiCaL agrees"
    return " (not checked: too large for the SAT solvers, or no time)"


def by_searches(
    graph: Graph,
    net: LoadedNet,
    known: Solution,
    k: int | None,
    limit: Limit,
    seed: int,
    hint_N: Ints | None,
) -> Solution:
    """Net, repair, TabuCol and HEAD; without the net if the graph is too large for it.

    `hint_N`: a proper colouring to start from.
    """

    before_s, entries = limit.spent, graph.n + 2 * graph.num_edges
    report, without_net = None, ""
    if entries <= MAX_ENTRIES_PER_SECOND * limit.about_seconds:
        solvers = NetSolvers(net.model, clock=limit.clock)
        attempts = solvers.head_attempts()
        result = solvers.pipeline(graph, limit.left, seed, attempts, k, hint_N)
        report = solvers.report
        found_by = report.found_by
    else:
        attempts = HeadAttempts(limit.clock)
        result = decrease_colours(
            graph,
            limit.left,
            seed,
            attempts,
            start=lambda _: known.colours_N,
            only_k=k,
            hint_N=hint_N,
            clock=limit.clock,
        )
        found_by = "reduction" if result.note == BY_REDUCTION else attempts.found_by
        without_net = f"the graph has {entries:,} nodes and directed edges, too many for it in this time"
    if result.conflicts == 0 and found_by == NetReport().found_by:
        found_by = "a greedy colouring"  # the time was over before the first try
    found_s = before_s + (result.seconds if result.found_s is None else result.found_s)
    solution = Solution(
        result.colours_N, result.conflicts, found_by, found_s, limit.spent, known.bound, report, without_net
    )
    return verified(graph, solution)
