"""What `ranks watch` shows in a terminal next to the progress: small curves, goodput, time and cost so far, events."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ranks.errors import clean
from ranks.progress import duration
from ranks.watch.live_run import LiveRun
from ranks.watch.sparkline import BLOCKS, sparkline

READ_S = 2.0
"""How often the files are read."""
LOG_CURVES_S = 600.0
"""How often the curves are printed in a log."""
MOST_CURVES, CURVE_WIDTH, NAME_WIDTH = 4, 32, 24
SHOWN_EVENTS = 5
MAIN_METRICS = ("train/loss", "rollout/episode_reward", "val/episode_reward", "match/rating", "val/loss")
OTHER_METRICS = ("val/", "match/", "rollout/", "train/")
"""The groups of metrics that follow the main ones."""


class RunStatus:
    """Follows the files of one run. `price`: of an hour of the machine; by default that of each session."""

    def __init__(
        self,
        folder: Path,
        price: float | None = None,
        *,
        levels: str = BLOCKS,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`levels`: the characters of a curve, from low to high."""
        self._live, self._price, self._levels = LiveRun(folder, clock), price, levels
        self._clock, self._now = clock, now
        self._read_s = self._logged_s = -math.inf
        self._logged_changes = 0

    def read(self, *, at_once: bool = False) -> None:
        """Read what is new in the files, where the last reading is old enough, or `at_once`."""
        if at_once or self._clock() - self._read_s >= READ_S:
            self._live.read()
            self._read_s = self._clock()

    def read_all(self) -> None:
        """Read the files to their ends, which takes some seconds for a long run."""
        self.read(at_once=True)
        while self._live.unread is not None:
            self.read(at_once=True)

    def curves(self) -> list[str]:
        """A line for each main metric: its curve, its newest value, its lowest and highest one."""
        return [self._curve(name) for name in main_metrics(self._live.curves)]

    def log_curves(self, *, end: bool = False) -> list[str]:
        """The curves for a log: only now and then, and at the `end` where they have changed since."""
        due = end or self._clock() - self._logged_s >= LOG_CURVES_S
        if not due or self._live.changes == self._logged_changes:
            return []
        self._logged_s, self._logged_changes = self._clock(), self._live.changes
        return self.curves()

    def parts(self) -> list[str]:
        """Of a progress line in a log: 'goodput 93.2%' and 'cost 5.18'."""
        facts, now = self._live.facts, self._now()
        cost = facts.cost(self._price, now)
        goodput = [f"goodput {facts.goodput(now):.1%}"] if facts.sums.kept_s else []
        return [*goodput, *([f"cost {cost.total:,.2f}"] if cost is not None else [])]

    def summary(self) -> str:
        """'goodput 93.2%, 2 h 05 min in all sessions, cost 5.18 at 2.49 an hour, for all sessions'."""
        facts, now = self._live.facts, self._now()
        cost = facts.cost(self._price, now)
        goodput = [f"goodput {facts.goodput(now):.1%}"] if facts.sums.kept_s else []
        time_s = f"{duration(facts.wall_s(now))} in all sessions"
        return ", ".join([*goodput, time_s, *([f"cost {cost.words}"] if cost is not None else [])])

    def events(self) -> list[str]:
        """The newest starts, ends, faults and warnings."""
        return [clean(" ".join(event)) for event in list(self._live.facts.history())[-SHOWN_EVENTS:]]

    def _curve(self, name: str) -> str:
        curve = self._live.curves[name]
        buckets = curve.since(-1)[1]
        newest = curve.newest or buckets[-1]
        low, high = min(bucket.low for bucket in buckets), max(bucket.high for bucket in buckets)
        drawn = sparkline([bucket.mean for bucket in buckets], CURVE_WIDTH, self._levels)
        return f"{name:<{NAME_WIDTH}.{NAME_WIDTH}} {drawn} {newest.mean:.4g} ({low:.4g} to {high:.4g})"


def main_metrics(names: Iterable[str]) -> list[str]:
    """Those that have a curve in a terminal, the most important first."""
    known = list(names)
    others = (name for group in OTHER_METRICS for name in known if name.startswith(group))
    return list(dict.fromkeys([*(name for name in MAIN_METRICS if name in known), *others]))[:MOST_CURVES]
