"""Who plays: our own players, searches with an evaluator, and UCI programs."""
