"""How good predictions are: by frame, by bout, with intervals over animals."""
