"""Prices from files, and what is derived from them day by day. NumPy alone: no torch, no net."""
