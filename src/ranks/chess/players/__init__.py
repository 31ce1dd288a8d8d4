"""Players: random, greedy, alpha-beta, minimax and tree search; what a player is; player specs."""
