"""The command line, and the only room that knows tyro."""
