"""Sources of positions: games and files; filters; parts on disk."""
