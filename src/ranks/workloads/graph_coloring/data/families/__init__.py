"""The graph families, and which graph each item is."""
