"""The Universal Chess Interface (Meyer-Kahlen 2004), from both sides: as the GUI and as the
engine."""
