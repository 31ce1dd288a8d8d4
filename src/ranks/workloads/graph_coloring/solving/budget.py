"""The seconds that a search may take: how they are asked for, and what is said of one that took more."""

from __future__ import annotations

from ranks.engine.config import seconds
from ranks.errors import UserError

SPARE_SHARE, SPARE_S = 0.1, 0.1
"""A search that takes longer than its budget by more than this share and these seconds has overrun it."""


def budget_seconds(text: str) -> float:
    """'10s' -> 10.0. Raises UserError, also for no time at all."""
    budget_s = seconds(text, "--budget")
    if budget_s <= 0:
        raise UserError(f"--budget {text}", "a search needs time", "give more than 0s, such as --budget 10s")
    return budget_s


def overrun(spent_s: float, budget_s: float) -> str:
    """'took 12.3 s', where that is an overrun; else nothing."""
    return f"took {spent_s:.1f} s" if spent_s > (1 + SPARE_SHARE) * budget_s + SPARE_S else ""
