"""Small solved games, for tests of the search."""
