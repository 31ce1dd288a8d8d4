"""How long a UCI engine may take, and when a search counts as hung."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ranks.chess.players.player import Limits


@dataclass(frozen=True)
class Timeouts:
    """How many seconds an engine gets."""

    start_s: float = 15.0
    """To say uciok."""
    ready_s: float = 60.0
    """To say readyok, e.g. while it loads a network."""
    late_s: float = 5.0
    """To move after `stop`, or after its time and the time margin are over. (The match decides
    about losses on time.)"""
    silent_s: float = 60.0
    """Without any line, in a search without a time limit that is not infinite."""
    move_s: float = 600.0
    """For such a search in all."""
    quit_s: float = 1.0


DEFAULT_TIMEOUTS = Timeouts()


class SearchDeadline:
    """When a search counts as hung. All times are seconds on one clock."""

    def __init__(self, timeouts: Timeouts, limits: Limits, started_s: float) -> None:
        self._late_s = timeouts.late_s
        self._heard_s = started_s
        """When the engine last wrote a line."""
        times = [] if limits.movetime_s is None else [limits.movetime_s]
        if limits.clock:
            times.append(max(limits.clock.remaining_s, 0.0))
        if limits.infinite:  # analysis, or pondering: the engine waits for `stop` as long as we do
            self._end_s, self._silent_s = math.inf, math.inf
        elif not times:
            self._end_s, self._silent_s = started_s + timeouts.move_s, timeouts.silent_s
        else:
            self._end_s, self._silent_s = started_s + min(times) + limits.time_margin_s + timeouts.late_s, math.inf

    def line_received(self, now_s: float) -> None:
        """The engine wrote a line."""
        self._heard_s = now_s

    def stop_sent(self, now_s: float) -> None:
        """We sent `stop`."""
        self._end_s = now_s + self._late_s

    def expired(self, now_s: float) -> bool:
        """Whether the engine has used up its time, or has been silent for too long."""
        return now_s >= self._end_s or now_s - self._heard_s >= self._silent_s
