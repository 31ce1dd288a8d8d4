"""Building a data set with all cores."""
