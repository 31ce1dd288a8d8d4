"""What a cycle did, as metrics and as one line; and how the strength of a run grew with its hours.

No training reads these figures: they depend on the machine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ranks.engine.files.jsonl import number
from ranks.engine.update.step import StepStats
from ranks.workloads.chess_value.labelling.labeller import LabelledPart

GOAL_ELO = 2000.0
SHORTEST_H = 0.05
"""No speed is said of a shorter time."""


@dataclass
class CycleReport:
    """Counts and times of one cycle."""

    cycle: int
    started_s: float
    games: int = 0
    positions: int = 0
    """That were added."""
    cached: int = 0
    """Whose labels were computed before."""
    computed: int = 0
    """That were searched for their labels."""
    computing_s: float = 0.0
    """Seconds of these searches, also while the training went on."""
    label_s: float = 0.0
    """Seconds in which the training waited for labels."""
    updates: int = 0
    train_loss: float = math.nan
    match_s: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of the validation and the match."""
    _last_update: StepStats | None = None

    def timed(self, parts: Iterator[LabelledPart]) -> Iterator[LabelledPart]:
        """The same parts; the time until each arrives is added to `label_s`."""
        while True:
            began_s = time.perf_counter()
            part = next(parts, None)
            self.label_s += time.perf_counter() - began_s
            if part is None:
                return
            self.positions += part.positions
            self.cached += part.cached
            self.computed += part.computed
            self.computing_s += part.seconds
            yield part

    def trained(self, stats: StepStats) -> None:
        """An update was made."""
        self.updates += 1
        self._last_update = stats

    @contextmanager
    def matching(self) -> Generator[None]:
        """The time of this block is that of the match."""
        began_s = time.perf_counter()
        yield
        self.match_s += time.perf_counter() - began_s

    def ended(self, games: int, validation: Mapping[str, float], match: Mapping[str, float]) -> None:
        """The cycle has ended, and all its updates are finished."""
        self.games, self.scores = games, {**validation, **match}
        if self._last_update is not None:
            self.train_loss = float(self._last_update["loss"])

    @property
    def elapsed_s(self) -> float:
        """Since the cycle began."""
        return max(time.perf_counter() - self.started_s, 1e-9)

    def metrics(self, price: float | None) -> dict[str, float]:
        """Speeds of the cycle, shares of its time; with `price`, that of an hour, the cost of a million positions."""
        elapsed_s = self.elapsed_s
        found = {
            "positions": float(self.positions),
            "positions_per_hour": 3600 * self.positions / elapsed_s,
            "updates": float(self.updates),
            "updates_per_minute": 60 * self.updates / elapsed_s,
            "label_wait_share": self.label_s / elapsed_s,
            "match_share": self.match_s / elapsed_s,
        }
        if self.computed:
            found["labels_per_second"] = self.computed / max(self.computing_s, 1e-9)
        if self.computed + self.cached:
            found["cached_share"] = self.cached / (self.computed + self.cached)
        if price is not None and self.positions:
            found["cost_per_million_positions"] = price * elapsed_s / 3600 / self.positions * 1e6
        return found

    def line(self, price: float | None) -> str:
        """The cycle in one line."""
        found = self.metrics(price)
        parts = [f"{self.games} games", f"{self.positions:,} positions"]
        if "labels_per_second" in found:
            parts.append(f"{found['labels_per_second']:,.0f} labels/s")
        if "cached_share" in found:
            parts.append(f"{found['cached_share']:.0%} cached")
        parts.append(f"loss {self.train_loss:.4f}" if self.updates else "no update yet")
        if "loss" in self.scores:
            parts.append(f"validation {self.scores['loss']:.4f}")
        parts += [
            f"{found['positions_per_hour']:,.0f} positions/hour",
            f"{found['updates_per_minute']:,.0f} updates/min",
        ]
        if "cost_per_million_positions" in found:
            parts.append(f"{found['cost_per_million_positions']:,.2f} a million positions")
        if "rating" in self.scores:
            low, high = self.scores["rating_low"], self.scores["rating_high"]
            parts.append(f"rating {self.scores['rating']:.0f} ({low:.0f} to {high:.0f})")
        else:
            parts.append("no match, it saves up for one (--rating.share)")
        return f"cycle {self.cycle + 1}: {', '.join(parts)}"


@dataclass
class MatchTime:
    """The share of the seconds of a session that matches took. Their budget counts nodes, which are not seconds."""

    most: float
    """The share that they may have."""
    match_s: float = 0.0
    elapsed_s: float = 0.0
    _said: bool = False

    def add(self, report: CycleReport) -> str | None:
        """Add a cycle that has ended. Returns a warning the first time that the share is too large."""
        self.match_s += report.match_s
        self.elapsed_s += report.elapsed_s
        share = self.match_s / self.elapsed_s
        if self._said or not report.match_s or share <= self.most:
            return None
        self._said = True
        do = "give fewer --rating.nodes or --rating.rung-games, or more --games, files and cycles"
        return f"matches took {share:.0%} of the time, more than --rating.share {self.most:g}: {do}"


def strength_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Elo an hour between the first and the last rating of a run with its 95 % interval, and the hours to GOAL_ELO,
    measured or not reached. It is reached where two ratings in a row are above it with their whole intervals: of many
    cycles, one is by chance.

    `rows`: of metrics.jsonl."""
    rated = [(hours, row) for hours, row in _with_hours(rows) if number(row, "match/rating") is not None]
    if len(rated) >= 2:
        (first_h, first), (last_h, last) = rated[0], rated[-1]
        gained, hours = _rating(last) - _rating(first), last_h - first_h
        about = math.hypot(_half_width(first), _half_width(last))
        speed = f": {gained / hours:+,.0f} +/- {about / hours:,.0f} Elo an hour" if hours >= SHORTEST_H else ""
        yield f"rating {_rating(first):.0f} to {_rating(last):.0f} in {hours:.2f} h{speed}"
    if rated:
        above = [(number(row, "match/rating_low") or -math.inf) >= GOAL_ELO for _, row in rated]
        reached = next((at + 1 for at in range(len(rated) - 1) if above[at] and above[at + 1]), None)
        goal = f"above {GOAL_ELO:.0f} with their whole intervals"
        yield (
            f"two ratings in a row were {goal} after {rated[reached][0]:.2f} hours"
            if reached is not None
            else f"{rated[-1][0]:.2f} hours: no two ratings in a row were {goal}"
        )


def _with_hours(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Each row with the hours until its end."""
    hours = 0.0
    for row in rows:
        hours += (number(row, "time/iteration_s") or 0.0) / 3600
        yield hours, row


def _half_width(row: Mapping[str, Any]) -> float:
    return ((number(row, "match/rating_high") or math.inf) - (number(row, "match/rating_low") or -math.inf)) / 2


def _rating(row: Mapping[str, Any]) -> float:
    return number(row, "match/rating") or 0.0
