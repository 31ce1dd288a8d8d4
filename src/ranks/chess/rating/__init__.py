"""The mathematics of rating: scores and Elo, SPRT, and a fit of a whole pool.

It does not know the rules of chess."""
