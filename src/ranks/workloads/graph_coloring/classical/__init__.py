"""Classical colouring algorithms, compiled with Numba: greedy, TabuCol, repair, exact search."""
