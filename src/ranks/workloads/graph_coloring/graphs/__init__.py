"""Graphs, graph files, node features, and the checker of colourings. No net, no solver."""
