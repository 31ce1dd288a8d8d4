"""The parts of benchmarks/graph_coloring/randcsp: its graphs, its methods, and its file of results."""
