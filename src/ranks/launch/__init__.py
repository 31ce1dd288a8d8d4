"""Ranks as processes on this machine: where they run, how they start, what happens when one dies. Imports no torch."""
