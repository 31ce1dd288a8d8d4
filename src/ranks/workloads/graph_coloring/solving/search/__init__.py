"""Solvers with a limit of time or of moves, with and without the net."""
