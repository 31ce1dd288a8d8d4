"""Drawings and plots."""
