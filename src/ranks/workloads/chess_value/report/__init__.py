"""The page about a run of chess-value."""
