"""The search for the best colouring within a time: proofs, then the net, repair and TabuCol.

1. DSATUR and a clique. They settle the graph if both have the same number of colours or nodes, if
   DSATUR needs no more colours than allowed, or if the clique is too large.
2. On small graphs a short exact search.
3. The net, with repair, then TabuCol from the net's colouring.

DSATUR's colouring is the result if nothing better is found. `Solution.found_by` names the component
that found it.
"""

from __future__ import annotations

import functools
import time
from dataclasses import replace

import torch

from ranks.workloads.graph_coloring.classical.exact import search_upwards
from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.classical.reduction import reduce_to_core
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.features import OutOfTime
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.search import GraphSearch
from ranks.workloads.graph_coloring.net.weights_file import LoadedNet
from ranks.workloads.graph_coloring.solving.search.net_solvers import NetReport, NetSolvers
from ranks.workloads.graph_coloring.solving.solution import Bound, Solution, clique_bound, verified
from ranks.workloads.graph_coloring.solving.search.solvers import tabucol_solver

EXACT_SHARE, MAX_EXACT_NODES = 0.05, 500
"""The exact search gets this share of the budget, if the k-core has at most this many nodes."""
ENCODE_SHARE = 0.05
"""The net is skipped if encoding the graph takes more than this share of the time left.

A round of the net takes about as long as the encoding.
"""


def by_dsatur(graph: Graph) -> Solution:
    """The colouring of DSATUR, with the lower bound of a clique."""
    return verified(graph, _by_dsatur(graph))


def _by_dsatur(graph: Graph) -> Solution:
    start_s = time.perf_counter()
    colours_N = dsatur(graph)
    found_s = time.perf_counter() - start_s
    bound = clique_bound(graph)
    spent_s = time.perf_counter() - start_s
    return Solution(colours_N, graph.conflicts(colours_N), "DSATUR", found_s, spent_s, bound)


def by_net(graph: Graph, net: LoadedNet, *, k: int | None, budget_s: float, seed: int) -> Solution:
    """The best colouring within the budget, by all methods.

    With `k`: a colouring with at most k colours, or the best try.
    """
    start_s = time.perf_counter()

    def finished(solution: Solution) -> Solution:
        return replace(verified(graph, solution), seconds=time.perf_counter() - start_s)

    known = _by_dsatur(graph)
    greedy_s = known.seconds
    if not known.settled(k):
        known = by_exact_search(graph, known, k, start_s, EXACT_SHARE * budget_s)
    if known.settled(k):
        return finished(replace(known, without_net="not needed"))
    start_s += _warm_up()  # the cost of the first use in a process does not count
    left_s = budget_s - (time.perf_counter() - start_s)
    if left_s <= greedy_s:
        return finished(replace(known, without_net="no time was left"))
    if greedy_s > ENCODE_SHARE * left_s:  # encoding the graph takes longer than DSATUR
        found = by_tabucol(graph, known.bound, k, left_s, seed)
    else:
        found = by_pipeline(graph, net, known.bound, k, left_s, seed)
    found = replace(found, found_s=found.found_s + budget_s - left_s)
    dsatur_is_better = k is None and known.num_colours < found.num_colours
    if found.proper(k) and not dsatur_is_better:
        return finished(found)
    if known.proper(k):
        return finished(replace(known, report=found.report, without_net=found.without_net))
    return finished(found)


def by_net_alone(graph: Graph, net: LoadedNet, *, k: int | None, budget_s: float, seed: int) -> Solution:
    """The best colouring of the net with repair.

    Nothing classical is used except the clique that ends the search.
    """
    _warm_up()
    solvers = NetSolvers(net.model)
    result = solvers.repaired(graph, budget_s, seed, k)
    found_s = result.seconds if result.found_s is None else result.found_s
    found = Solution(
        result.colours_N,
        result.conflicts,
        solvers.report.found_by,
        found_s,
        result.seconds,
        clique_bound(graph),
        solvers.report,
    )
    return verified(graph, found)


def _warm_up() -> float:
    """Loads compiled code and torch; returns the seconds, almost none after the first call."""
    start_s = time.perf_counter()
    _colour_tiny_graph()
    return time.perf_counter() - start_s


@functools.cache
def _colour_tiny_graph() -> None:
    model = ColouringNet(width=4, encoder_width=4).eval()
    GraphSearch(model, Graph.of(3, [(0, 1), (1, 2)]), torch.device("cpu")).run(2, 0, range(1), 1)


def by_exact_search(graph: Graph, known: Solution, k: int | None, start_s: float, seconds: float) -> Solution:
    """Improves a solution by exact search until `seconds` after `start_s`.

    The search may find a colouring with the fewest colours, or with `k`; or a better lower bound;
    or nothing.
    """
    low, high = (known.bound.colours, known.num_colours) if k is None else (k, k + 1)
    if reduce_to_core(graph, low).core.n > MAX_EXACT_NODES:
        return known
    low, colours_N = search_upwards(graph, low, high, lambda: time.perf_counter() - start_s > seconds)
    proven = k is None or low > k
    if proven and low > known.bound.colours:
        known = replace(known, bound=Bound(low, f"an exact search with {low - 1} colours found none"))
    if colours_N is None:
        return known
    found_s = time.perf_counter() - start_s
    return Solution(colours_N, graph.conflicts(colours_N), "exact search", found_s, found_s, known.bound)


def by_pipeline(graph: Graph, net: LoadedNet, bound: Bound, k: int | None, budget_s: float, seed: int) -> Solution:
    """Net, repair and TabuCol; only TabuCol if the net cannot encode the graph in time."""
    start_s = time.perf_counter()
    solvers = NetSolvers(net.model)
    try:
        GraphSearch(net.model, graph, solvers.device, lambda: time.perf_counter() - start_s > ENCODE_SHARE * budget_s)
    except OutOfTime:
        left_s = budget_s - (time.perf_counter() - start_s)
        found = by_tabucol(graph, bound, k, left_s, seed)
        return replace(found, found_s=found.found_s + budget_s - left_s)
    spent_s = time.perf_counter() - start_s
    result = solvers.pipeline(graph, budget_s - spent_s, seed, k)
    found_by = solvers.report.found_by
    if result.conflicts == 0 and found_by == NetReport().found_by:
        found_by = "a greedy colouring"  # the time was over before the first try
    return Solution(
        result.colours_N,
        graph.conflicts(result.colours_N),
        found_by,
        spent_s + (result.seconds if result.found_s is None else result.found_s),
        spent_s + result.seconds,
        bound,
        solvers.report,
    )


def by_tabucol(graph: Graph, bound: Bound, k: int | None, budget_s: float, seed: int) -> Solution:
    """TabuCol alone, for graphs that are too large for the net.

    It starts from DSATUR's colouring, or with `k` from random colours.
    """
    if k is None:
        result = tabucol_solver(graph, budget_s, seed)
        colours_N, found_s, seconds = result.colours_N, result.found_s or result.seconds, result.seconds
    else:
        reduction = reduce_to_core(graph, k)
        found = tabucol(reduction.core, k, seed, max_s=budget_s)
        colours_N, found_s, seconds = reduction.extend(found.colours_N), found.seconds, found.seconds
    why = f"encoding the graph would take it more than {ENCODE_SHARE:.0%} of the time"
    return Solution(colours_N, graph.conflicts(colours_N), "TabuCol", found_s, seconds, bound, without_net=why)
