"""The tables of `ranks prove table graph-coloring`: the network compared with classical methods."""
