"""The net's estimate of the chromatic number, made possible."""

from __future__ import annotations

from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.graphs.graph import Graph


def bounded_estimate(graph: Graph, estimate: float) -> float:
    """The estimate where it lies between the nodes of a clique and the colours of DSATUR's colouring; else the nearer
    of the two. Both take milliseconds, and the chromatic number lies between them."""
    return min(max(estimate, float(len(greedy_clique(graph)))), float(num_colours(dsatur(graph))))
