"""Prices from files, the features of each day, and the periods that a policy trades. NumPy only: no torch."""
