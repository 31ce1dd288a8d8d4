"""`ranks forecast`: flags, the child that records a profile, and what is printed."""
