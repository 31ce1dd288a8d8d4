"""Matches between players: openings, clocks, games, schedules and ladders."""

from __future__ import annotations

OPENING_PLIES = 8
"""Of the built-in openings."""
MAX_PLIES = 1000
"""A game of this many plies is a draw. The fifty-move rule ends almost all games earlier."""
