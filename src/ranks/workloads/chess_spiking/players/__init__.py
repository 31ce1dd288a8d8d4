"""chess-spiking as a chess player."""
