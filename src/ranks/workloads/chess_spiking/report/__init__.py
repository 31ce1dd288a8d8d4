"""`ranks chess-spiking report`: one page with plots about a run."""
