"""The poses and the trees of rat_set.py."""
