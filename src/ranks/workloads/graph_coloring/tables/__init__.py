"""The proof tables: the net beside everything a reader would hold against it."""
