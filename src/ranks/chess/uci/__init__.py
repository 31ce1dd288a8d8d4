"""The Universal Chess Interface (Meyer-Kahlen 2004), as a GUI and as an engine."""
