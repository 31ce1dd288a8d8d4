"""The parts of benchmarks/coloring_randcsp.py: its graphs, its methods, and its file of results."""
