"""Matches inside training: the newest weights against the best so far and against fixed players."""
