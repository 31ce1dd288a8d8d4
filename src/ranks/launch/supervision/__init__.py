"""Watching the ranks of one machine: their start, hangs, ends, restarts and stops."""
