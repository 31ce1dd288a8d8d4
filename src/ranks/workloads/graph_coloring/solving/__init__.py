"""Solvers with a time limit, the search for the best colouring of a graph, and the commands `solve`
and `bench`."""
