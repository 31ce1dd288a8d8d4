"""Videos decoded once into a folder of memory-mapped greys."""
