"""The commands `ranks chess-value label` and `ranks chess-value cache`."""
