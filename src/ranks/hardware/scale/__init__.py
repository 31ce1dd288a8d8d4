"""How speed grows with the number of ranks: where an iteration's time goes, and what is lost against the ideal."""
