"""Games looked at move by move: scores, mistakes, a graph, an annotated game."""
