"""Tree search over many games at once, for any game that gives its rules as jitted functions."""
