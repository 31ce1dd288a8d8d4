"""Independent tasks, such as games, on all ranks and all cores."""
