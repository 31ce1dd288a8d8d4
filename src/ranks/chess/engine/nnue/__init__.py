"""A net that an engine evaluates incrementally (NNUE): features, quantised weights, inference. NumPy and Numba only."""
