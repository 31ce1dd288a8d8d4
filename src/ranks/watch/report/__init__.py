"""`ranks report`: one page about a run, drawn from its files."""
