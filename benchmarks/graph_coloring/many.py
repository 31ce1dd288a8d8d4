"""Graphs per second of `solve_many`: 10,000 random graphs of 50 nodes.

    python -m benchmarks.graph_coloring.many [--graphs 10000] [--nodes 50] [--passes 0 1 2] [--quick]

The densities are uniform in 0.1 to 0.9. Pass 0 is DSATUR and a clique; each further pass gives every
graph that is not settled a search by TabuCol twice as long as the pass before. Every colouring is
checked by the independent checker. Graphs are given as `Graph` and as networkx graphs; the
conversion of the latter counts. The first compilation does not count.

Writes benchmarks/results/coloring_many_DATE.json.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import networkx
import numpy as np

from benchmarks.measure import origin, write_result
from ranks.workloads.graph_coloring import solve_many
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.graph import Graph

LONG_S = 1e6


def random_graph(seed: int, n: int) -> Graph:
    rng = np.random.default_rng(seed)
    return Graph.of(n, np.argwhere(np.triu(rng.random((n, n)) < rng.uniform(0.1, 0.9), 1)))


def to_networkx(graph: Graph) -> networkx.Graph:
    converted = networkx.empty_graph(graph.n)
    converted.add_edges_from(graph.edges_E2.tolist())
    return converted


def measured(kind: str, given: list[Any], graphs: list[Graph], passes: int) -> dict[str, Any]:
    start_cpu_s = time.process_time()
    found = solve_many(given, passes=passes, budget_s=LONG_S)
    cpu_s = time.process_time() - start_cpu_s
    wrong = sum(
        bool(problems(graph.n, graph.edges_E2.tolist(), colours_N.tolist(), int(used)))
        for graph, colours_N, used in zip(graphs, found.colours, found.num_colours_B, strict=True)
    )
    assert wrong == 0, f"{wrong} colourings are refuted by the checker"
    row = {"kind": kind, "passes": passes, "seconds": round(found.seconds, 3), "cpu_s": round(cpu_s, 3)}
    row |= {"graphs_per_second": round(len(graphs) / found.seconds), "graphs_per_cpu_s": round(len(graphs) / cpu_s)}
    row |= {"mean_colours": float(found.num_colours_B.mean())}
    return row | {"settled": float((found.num_colours_B == found.clique_B).mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--graphs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--passes", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--quick", action="store_true", help="500 graphs; writes nothing")
    asked = parser.parse_args()
    graphs = [random_graph(seed, asked.nodes) for seed in range(500 if asked.quick else asked.graphs)]
    given = {"Graph": graphs, "networkx": [to_networkx(graph) for graph in graphs]}
    solve_many(graphs[:2], passes=1)
    rows = [measured(kind, given[kind], graphs, passes) for kind in given for passes in asked.passes]
    for row in rows:
        print(row)
    if asked.quick:
        return
    content = {"origin": origin(), "settings": vars(asked), "threads": os.cpu_count(), "rows": rows}
    path = write_result(f"coloring_many_{time.strftime('%Y-%m-%d')}", content)
    print(f"written: {path}")


if __name__ == "__main__":
    main()
