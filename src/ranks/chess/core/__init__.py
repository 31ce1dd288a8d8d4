"""The rules of chess, static evaluation and alpha-beta as jitted functions on bitboards."""
