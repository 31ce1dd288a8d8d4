"""A chess engine: an alpha-beta search with tables or a quantised net (NNUE) as its evaluation."""
