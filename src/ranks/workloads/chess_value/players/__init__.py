"""chess-value as a chess player."""
