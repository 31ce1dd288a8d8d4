"""`ranks forecast`: the child that records a profile, and what is printed."""
