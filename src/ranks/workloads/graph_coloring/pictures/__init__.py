"""Drawings of coloured graphs and plots of results, with matplotlib."""
