"""Sizes and times as a person reads them."""

from __future__ import annotations


def size(num_bytes: int) -> str:
    """20480 -> '20 KB', 1300000 -> '1.3 MB'."""
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if num_bytes >= length:
            number = num_bytes / length
            return f"{number:.1f} {unit}" if number < 10 else f"{number:.0f} {unit}"
    return f"{num_bytes} B"


def age(seconds: float) -> str:
    """90 -> '1m'."""
    for unit, length_s in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length_s:
            return f"{seconds // length_s:.0f}{unit}"
    return f"{seconds:.0f}s"


def short_s(seconds: float) -> str:
    """0.0123 -> '12.3 ms'."""
    for unit, length_s in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= length_s:
            return f"{seconds / length_s:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def last_line(text: str) -> str:
    """The last line that is not empty, which says why a program ended."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no message")[:300]
