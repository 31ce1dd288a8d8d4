"""The flag --price of commands on runs."""

from __future__ import annotations

import math

from ranks.errors import UserError


def check_price(price: float | None) -> None:
    """Raises UserError where the price of an hour is given and is no number above 0."""
    if price is not None and not 0 < price < math.inf:
        raise UserError(f"--price {price}", "it must be a number above 0", "give --price 2.49, for example")
