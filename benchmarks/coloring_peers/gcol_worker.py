"""The TabuCol of gcol (PyPI), as a process that waits: run by a Python that has gcol, never by the project's own.

Each line of input is a request {"graph", "n", "edges", "k", "moves", "seed"} (edges once for each graph), each line of
output its answer {"conflicts"}. The first line of output is {"version"}, or {"missing"} with the reason.
"""

from __future__ import annotations

import json
import random
import sys


def main() -> None:
    try:
        from importlib.metadata import version

        import gcol
        import networkx as nx
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    print(json.dumps({"version": version("gcol")}), flush=True)
    graphs = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if "edges" in asked:
            graph = graphs[asked["graph"]] = nx.empty_graph(asked["n"])
            graph.add_edges_from(asked["edges"])
        graph = graphs[asked["graph"]]
        random.seed(asked["seed"])
        colour = gcol.min_cost_k_coloring(graph, asked["k"], weights_at="edges", it_limit=asked["moves"])
        print(json.dumps({"conflicts": sum(colour[u] == colour[v] for u, v in graph.edges)}), flush=True)


if __name__ == "__main__":
    main()
