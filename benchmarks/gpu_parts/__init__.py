"""What gpu.py measures, by subject; each part runs in a process of its own."""
