"""A study: dataset.csv, its classes, its split by animal, and a draft of it from a folder."""
