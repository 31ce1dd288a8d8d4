"""The rules of chess as jitted functions on bitboards, and nothing else."""
