"""The store of a study: its frames, decoded once."""
