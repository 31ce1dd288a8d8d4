"""Scores of positions: a pool of UCI engines, and a cache of what they said."""
