"""The TabuCol of gcol (PyPI) as a worker process, run by a Python interpreter that has gcol.

Each line of input is a request {"graph", "n", "edges", "k", "moves", "seed"} (n and edges only the
first time), each line of output its response {"conflicts"}. The first line of output is
{"version"}, or {"missing"} with the reason.
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
        request = json.loads(line)
        if "edges" in request:
            graph = graphs[request["graph"]] = nx.empty_graph(request["n"])
            graph.add_edges_from(request["edges"])
        graph = graphs[request["graph"]]
        random.seed(request["seed"])
        colour = gcol.min_cost_k_coloring(graph, request["k"], weights_at="edges", it_limit=request["moves"])
        print(json.dumps({"conflicts": sum(colour[u] == colour[v] for u, v in graph.edges)}), flush=True)


if __name__ == "__main__":
    main()
