"""Time controls as cutechess writes them, and the clock of a game that is played under one."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from ranks.errors import UserError

_WORDS = re.compile(
    r"(?:(?P<moves>\d+)/)?(?:(?P<minutes>\d+):)?(?P<seconds>\d+(?:\.\d+)?)(?:\+(?P<increment>\d+(?:\.\d+)?))?"
)


@dataclass(frozen=True)
class TimeControl:
    """What each side gets: `time_s` for `moves` moves, again and again, or for the whole game where that is None."""

    time_s: float
    increment_s: float = 0.0
    """Added after each move."""
    moves: int | None = None

    @classmethod
    def parse(cls, text: str) -> TimeControl:
        """`10+0.1` (seconds and increment), `40/60+0.5` (40 moves in 60 s), `5:00` (minutes). Raises UserError."""
        found = _WORDS.fullmatch(text.strip())
        if found:
            time_s = 60 * int(found["minutes"] or 0) + float(found["seconds"])
            moves = int(found["moves"]) if found["moves"] else None
            if math.isfinite(time_s) and time_s > 0 and moves != 0:
                return cls(time_s, float(found["increment"] or 0), moves)
        raise UserError(
            f"--tc {text}",
            "not a time control",
            "write seconds+increment (10+0.1), moves/seconds+increment (40/60+0.5) or minutes:seconds (5:00+3)",
        )

    def __str__(self) -> str:
        moves = f"{self.moves}/" if self.moves else ""
        increment = f"+{self.increment_s:g}" if self.increment_s else ""
        return f"{moves}{self.time_s:g}{increment}"


@dataclass
class GameClock:
    """The two clocks of one game, white's first."""

    control: TimeControl
    margin_s: float = 0.0
    """A flag falls only so much after the time is over, for machines that are busy with other work."""
    remaining_s: list[float] = field(init=False)
    _played: list[int] = field(init=False, default_factory=lambda: [0, 0])

    def __post_init__(self) -> None:
        self.remaining_s = [self.control.time_s] * 2

    def moves_to_go(self, side: int) -> int | None:
        """Moves until the next period of `side` (0 white, 1 black) begins; None: the time is for the whole game."""
        return None if self.control.moves is None else self.control.moves - self._played[side] % self.control.moves

    def spend(self, side: int, elapsed_s: float) -> bool:
        """Take the time of one move of `side` off its clock. False where the flag has fallen."""
        self.remaining_s[side] -= elapsed_s
        if self.remaining_s[side] < -self.margin_s:
            return False
        self._played[side] += 1
        self.remaining_s[side] += self.control.increment_s
        if self.control.moves and self._played[side] % self.control.moves == 0:
            self.remaining_s[side] += self.control.time_s
        return True
