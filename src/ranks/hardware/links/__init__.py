"""How long collectives take: measured with two ranks, or from the catalogue."""
