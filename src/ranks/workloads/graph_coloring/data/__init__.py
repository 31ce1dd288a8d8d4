"""The training graphs: graph families, labels, and the data set folders that hold them."""
