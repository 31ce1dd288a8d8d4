"""The commands `ranks chess ...` and the players that they can name."""
