"""Who can play: from random moves to any UCI program, each found by a word."""
