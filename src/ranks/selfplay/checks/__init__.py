"""What is checked before and while games are played: the rules, a symmetry, the trees, the memory."""
