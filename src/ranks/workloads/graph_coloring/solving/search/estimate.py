"""The net's estimate of the chromatic number, restricted to what is possible."""

from __future__ import annotations

from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.graphs.graph import Graph


def bounded_estimate(graph: Graph, estimate: float) -> float:
    """The estimate, clipped to the range from a greedy clique to the colours of DSATUR.

    The chromatic number is in that range. Both bounds take milliseconds.
    """
    return min(max(estimate, float(len(greedy_clique(graph)))), float(num_colours(dsatur(graph))))
