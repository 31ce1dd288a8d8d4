"""Proofs by experiment: `ranks train` commands are run, killed, stopped and compared as real processes."""
