"""The mathematics of rating: scores and Elo, SPRT, and a fit of a whole pool.

It serves every game of two players and knows the rules of none. The first move is `white`, and a draw
counts half a point."""
