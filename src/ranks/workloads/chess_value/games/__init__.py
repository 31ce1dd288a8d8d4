"""Games that give positions: of the present net with itself, and with Stockfish at fixed nodes."""
