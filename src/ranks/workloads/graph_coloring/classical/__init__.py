"""Classical colouring algorithms, compiled with Numba: greedy orders, TabuCol, repair, exact
search."""
