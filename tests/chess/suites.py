"""Positions whose numbers of move sequences are known."""

from __future__ import annotations

from pathlib import Path

PERFT = Path(__file__).parent / "perft.epd"


def perft_suites() -> list[tuple[str, dict[int, int]]]:
    """The positions of perft.epd, each with the known counts by depth."""
    lines = [line for line in PERFT.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    split = [line.split(" ;D") for line in lines]
    return [(fen, {int(c.split()[0]): int(c.split()[1]) for c in counts}) for fen, *counts in split]
