"""The files that `ranks new` writes."""
