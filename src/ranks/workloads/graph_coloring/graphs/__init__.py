"""Graphs, their files, and the checker of colourings. No net, no solver."""
