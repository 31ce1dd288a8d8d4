"""Damaged run folders, drawn from a seed, through every command that reads a run."""
