"""What colours graphs without a net: greedy orders, TabuCol, exact search; compiled by Numba."""
