"""A curve in one line of text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.-~=+*#"
"""For output that cannot show blocks."""


def levels_of(encoding: str | None) -> str:
    """The characters of a curve, from low to high, for output with this encoding."""
    try:
        BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def sparkline(values: Sequence[float], width: int, levels: str = BLOCKS) -> str:
    """One character for each value, or for the mean of neighbours where there are more than `width`. The lowest one
    gets the first level, the highest one the last."""
    count = min(width, len(values))
    cuts = [column * len(values) // max(count, 1) for column in range(count + 1)]
    columns = [sum(v / (end - start) for v in values[start:end]) for start, end in pairwise(cuts)]
    low, high = min(columns, default=0.0), max(columns, default=0.0)
    if low == high:
        return levels[len(levels) // 2] * count
    span, top = high / 2 - low / 2, len(levels) - 1  # halves do not overflow
    return "".join(levels[round((value / 2 - low / 2) / span * top)] for value in columns)
