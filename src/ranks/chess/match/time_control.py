"""Time controls in the notation of cutechess, and the clocks of a game."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from ranks.errors import UserError

_WORDS = re.compile(
    r"(?:(?P<moves>\d{1,9})/)?(?:(?P<minutes>\d{1,9}):)?"
    r"(?P<seconds>\d{1,9}(?:\.\d{1,9})?)(?:\+(?P<increment>\d{1,9}(?:\.\d{1,9})?))?",
    re.ASCII,
)


@dataclass(frozen=True)
class TimeControl:
    """`time_s` for each `moves` moves of a side, or for the whole game if `moves` is None."""

    time_s: float
    increment_s: float = 0.0
    """Added after each move."""
    moves: int | None = None

    @classmethod
    def parse(cls, text: str) -> TimeControl:
        """`10+0.1` (seconds and increment), `40/60+0.5` (40 moves in 60 s), `5:00` (minutes).
        Raises UserError."""
        found = _WORDS.fullmatch(text.strip())
        if found:
            time_s = 60 * int(found["minutes"] or 0) + float(found["seconds"])
            moves = int(found["moves"]) if found["moves"] else None
            if math.isfinite(time_s) and time_s > 0 and moves != 0:
                return cls(time_s, float(found["increment"] or 0), moves)
        raise UserError(
            f"--tc {text}",
            "this is not a time control",
            "write seconds+increment (10+0.1), moves/seconds+increment (40/60+0.5) or minutes:seconds (5:00+3)",
        )

    def __str__(self) -> str:
        moves = f"{self.moves}/" if self.moves else ""
        increment = f"+{self.increment_s:g}" if self.increment_s else ""
        return f"{moves}{self.time_s:g}{increment}"


@dataclass
class GameClock:
    """The two clocks of a game; index 0 is white."""

    control: TimeControl
    time_margin_s: float = 0.0
    """How far a clock may run below zero before its flag falls; for busy machines."""
    remaining_s: list[float] = field(init=False)
    _played: list[int] = field(init=False, default_factory=lambda: [0, 0])

    def __post_init__(self) -> None:
        self.remaining_s = [self.control.time_s] * 2

    def moves_to_go(self, side: int) -> int | None:
        """Moves of `side` (0 white, 1 black) to the next time control; None if there is only
        one."""
        return None if self.control.moves is None else self.control.moves - self._played[side] % self.control.moves

    def spend(self, side: int, elapsed_s: float) -> bool:
        """Subtract the time of one move of `side` from its clock.

        Returns False if its flag has fallen."""
        self.remaining_s[side] -= elapsed_s
        if self.remaining_s[side] < -self.time_margin_s:
            return False
        self._played[side] += 1
        self.remaining_s[side] += self.control.increment_s
        if self.control.moves and self._played[side] % self.control.moves == 0:
            self.remaining_s[side] += self.control.time_s
        return True
