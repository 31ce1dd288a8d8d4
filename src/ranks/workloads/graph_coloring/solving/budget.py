"""The time limit of a search: parsing it, and the note about a search that exceeded it."""

from __future__ import annotations

from ranks.engine.config import seconds
from ranks.errors import UserError

TOLERANCE_SHARE, TOLERANCE_S = 0.1, 0.1
"""A search may exceed its budget by this share and these seconds before that is noted."""


def budget_seconds(text: str) -> float:
    """'10s' -> 10.0. Raises UserError, also for zero seconds."""
    budget_s = seconds(text, "--budget")
    if budget_s <= 0:
        raise UserError(f"--budget {text}", "a search needs time", "give more than 0s, for example --budget 10s")
    return budget_s


def overrun(spent_s: float, budget_s: float) -> str:
    """'took 12.3 s' if a search exceeded its budget, else ''."""
    return f"took {spent_s:.1f} s" if spent_s > (1 + TOLERANCE_SHARE) * budget_s + TOLERANCE_S else ""
