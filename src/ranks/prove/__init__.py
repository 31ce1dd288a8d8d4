"""Proofs by experiment: real processes, started through the command line, killed, stopped and compared."""
