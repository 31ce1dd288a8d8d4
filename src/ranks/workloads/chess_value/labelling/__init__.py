"""Labels of a cycle's positions, part by part: of an engine, of the net's own search, or of the games alone."""
