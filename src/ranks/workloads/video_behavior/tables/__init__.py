"""`ranks prove table video-behavior`: the net next to baselines that must lose, and the leak of a split by clip."""
