"""The training graphs: families, labels, and the files that keep them."""
