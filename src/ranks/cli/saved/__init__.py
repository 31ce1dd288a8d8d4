"""Saved runs: their settings, code and models."""
