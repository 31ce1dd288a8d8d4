"""The limit of a search: seconds, or moves, which give the same answer on any machine."""

from __future__ import annotations

import operator
import re
import time
from typing import Any

from ranks.engine.config import seconds
from ranks.errors import UserError

TOLERANCE_SHARE, TOLERANCE_S = 0.1, 0.1
"""A search may exceed its budget by this share and these seconds before that is noted."""
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


class SearchClock:
    """Wall time in seconds. `time.perf_counter` with the interface of MoveClock."""

    unit = "s"

    def __call__(self) -> float:
        """The current time."""
        return time.perf_counter()

    def charge(self, moves: int) -> None:
        """Records work that was done; the wall clock ignores it."""

    def limits(self, moves: int | None, left: float) -> tuple[int | None, float | None]:
        """(max_moves, max_s) of a search with at most `moves` moves, when `left` is left."""
        return moves, left


class MoveClock(SearchClock):
    """Counts moves of a local search instead of seconds; other work counts as a number of moves.

    So whatever a search decides by this clock depends on its arguments only.
    """

    unit = "moves"

    def __init__(self) -> None:
        self.spent = 0

    def __call__(self) -> float:
        return float(self.spent)

    def charge(self, moves: int) -> None:
        self.spent += moves

    def limits(self, moves: int | None, left: float) -> tuple[int | None, float | None]:
        return min(int(left), int(left) if moves is None else moves), None


WALL = SearchClock()


def budget_seconds(text: str) -> float:
    """'10s' -> 10.0. Raises UserError, also for zero seconds."""
    budget_s = seconds(text, "--budget")
    if budget_s <= 0:
        raise UserError(f"--budget {text}", "a search needs time", "give more than 0s, for example --budget 10s")
    return budget_s


def number_of_moves(text: str) -> int:
    """'50M' -> 50,000,000; also k and G. Raises UserError."""
    found = re.fullmatch(r"(\d+)([kmg]?)", text.lower())
    if found is None or int(found[1]) == 0:
        raise UserError(f"--moves {text}", "not a number of moves", "give for example --moves 50M")
    return int(found[1]) * UNITS[found[2]]


def overrun(spent_s: float, budget_s: float) -> str:
    """'took 12.3 s' if a search exceeded its budget, else ''."""
    return f"took {spent_s:.1f} s" if spent_s > (1 + TOLERANCE_SHARE) * budget_s + TOLERANCE_S else ""


def integer(name: str, value: Any) -> int:
    """A value as an int, if it is an integer of any type (NumPy's too). Raises UserError."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise UserError(f"{name}={value!r}", f"a {type(value).__name__}", f"give a whole number, for example {name}=3")
