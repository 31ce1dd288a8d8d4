"""Smoothing of predictions over time, chosen on the validation videos."""
