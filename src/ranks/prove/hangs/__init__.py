"""Making ranks hang, from outside and from inside, and checking what the launcher does about it."""
