"""The mathematics of rating: scores and Elo, the sequential test, one fit over a pool. Knows numbers, not chess."""
