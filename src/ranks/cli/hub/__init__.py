"""`ranks publish` and `ranks fetch`."""
