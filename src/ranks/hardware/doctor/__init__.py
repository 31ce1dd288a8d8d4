"""Examines a machine before a run: `ranks doctor`."""
