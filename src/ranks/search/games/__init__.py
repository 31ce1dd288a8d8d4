"""Small games whose every position is known: they prove the search."""
