"""Matches between players: openings, clocks, referee, schedule, the ladder of a pool."""
