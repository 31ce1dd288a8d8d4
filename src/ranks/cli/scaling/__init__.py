"""`ranks scale`: the child that records a short run, the rounds, and what is printed and drawn."""
