"""Training runs: train several at a time, and load finished ones."""
