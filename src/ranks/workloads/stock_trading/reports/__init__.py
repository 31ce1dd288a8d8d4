"""Backtests, reports and walk-forward tests of trained policies."""
