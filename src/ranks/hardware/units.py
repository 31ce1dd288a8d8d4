"""Rates as a person reads them."""

from __future__ import annotations


def rate(per_second: float) -> str:
    """1234.5 -> '1,234', 3.456 -> '3.46'."""
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"
