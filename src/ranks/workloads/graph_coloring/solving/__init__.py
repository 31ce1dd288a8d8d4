"""Solvers with a time limit, the best colouring, and the commands `solve` and `bench`."""
