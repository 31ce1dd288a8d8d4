"""Names ranks whose own work takes longer than that of the others, and the cause, from the times in the ranks' rows.

Each rank counts its time of training (`engine/liveness/work_times.py`): own work, loading, sending, and waiting in
collectives. All ranks wait for the slowest one in each collective, so it is the one with the most work of its own and
the least waiting. A window of a few seconds gives the mean times of an iteration. A rank is a straggler after three
windows in a row in which its work takes more than 1.25 times the median of the others; more where the run's own
windows scatter more. Nothing is measured here, and the ranks send nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ranks.engine.liveness.beats import Beat, Field
from ranks.engine.liveness.phases import Phase
from ranks.engine.liveness.work_split import WorkSplit, split_between
from ranks.launch.supervision.notice import Cause, Notice

WINDOW_S = 4.0
LEAST_ITERATIONS = 5
"""In a window where the ranks are not at the same iteration: one more or less then matters little."""
IN_A_ROW = 3
KEPT = 20
"""Windows that the noise is learnt from."""
LEAST_KNOWN = 4
"""Nobody is named before so many windows. The first one is thrown away: it has the end of the first iteration."""
RATIO, NOISES = 1.25, 3.0
LEAST_SHARE, LEAST_S = 0.1, 0.001
"""The others wait for a straggler at least this share of an iteration, and so long."""
BASELINE = 8
"""Windows in which the wait of a healthy link is learnt."""
TRAINING = frozenset({Phase.TRAIN, Phase.EVALUATE, Phase.SAVE, Phase.WAITING_FOR_DATA})


Window = Mapping[int, WorkSplit]
"""Rank -> its times."""


@dataclass(frozen=True)
class SlowRank:
    """A rank that was slow in a window. `own_s`, `others_s`: of the cause alone; `lag_s`: how long the others wait."""

    rank: int
    cause: Cause
    own_s: float
    others_s: float
    lag_s: float


class WindowReader:
    """Cuts the counters of the rows into windows."""

    def __init__(self) -> None:
        self._start: dict[int, Beat] = {}
        self._started_s = 0.0

    def read(self, rows: Mapping[int, Beat], now_s: float) -> Window | None:
        """The times since the last window, None where it is too short or the ranks do not all train."""
        if any(not row.connected or row.phase not in TRAINING for row in rows.values()):
            self._start = {}
            return None
        if self._start.keys() != rows.keys():
            self._start, self._started_s = dict(rows), now_s
            return None
        done = [row[Field.ITERATION] - self._start[rank][Field.ITERATION] for rank, row in rows.items()]
        aligned = len(set(done)) == 1 and len({row[Field.ITERATION] for row in rows.values()}) == 1
        if now_s - self._started_s < WINDOW_S or min(done) < (1 if aligned else LEAST_ITERATIONS):
            return None
        window = {rank: split_between(self._start[rank], row) for rank, row in rows.items()}
        self._start, self._started_s = dict(rows), now_s
        return window


def slow_in(window: Window, limit: float) -> dict[int, SlowRank]:
    """The ranks whose own work takes more than `limit` times the median of the others, while those wait for them."""
    found: dict[int, SlowRank] = {}
    for rank, mine in window.items():
        others = [split for other, split in window.items() if other != rank]
        lag_s = median(other.wait_s for other in others) - mine.wait_s
        needed_s = max(LEAST_S, LEAST_SHARE * mine.iteration_s)
        if others and mine.own_s > limit * median(other.own_s for other in others) and lag_s >= needed_s:
            parts: dict[Cause, tuple[float, float]] = {
                "compute": (mine.compute_s, median(other.compute_s for other in others)),
                "data": (mine.data_s, median(other.data_s for other in others)),
                "network": (mine.send_s, median(other.send_s for other in others)),
            }
            cause = max(parts, key=lambda name: parts[name][0] - parts[name][1])
            found[rank] = SlowRank(rank, cause, *parts[cause], lag_s)
    return found


def limit_learnt(windows: Sequence[Window]) -> float:
    """The ratio above which a rank is slow: 1.25, more where the ratio changes much from one window to the next.

    Neighbouring windows are compared, so a rank that is slow all the time does not make itself look like noise.
    """
    logs = [_log_ratios(window) for window in windows]
    return 1 + max(RATIO - 1, math.expm1(NOISES * noise([[log[rank] for log in logs] for rank in logs[0]])))


def noise(series: Sequence[Sequence[float]]) -> float:
    """The standard deviation of numbers around a level that may jump, from the median of neighbours' differences (a
    normal variable's median absolute value is 0.6745 of its standard deviation); 0 without neighbours."""
    steps = [abs(b - a) for values in series for a, b in pairwise(values)]
    return median(steps) / (0.6745 * math.sqrt(2)) if steps else 0.0


def _log_ratios(window: Window) -> dict[int, float]:
    """How much longer each rank works than the median of the others, as a logarithm."""
    return {
        rank: math.log(max(mine.own_s, 1e-9) / max(1e-9, median(o.own_s for r, o in window.items() if r != rank)))
        for rank, mine in window.items()
    }


class Stragglers:
    """Follows the windows of a run and gives notices. `hint(rank)`: what else is known of a rank now, in words."""

    def __init__(self, hint: Callable[[int], str] = lambda rank: "") -> None:
        self._hint = hint
        self._reader = WindowReader()
        self._windows: deque[Window] = deque(maxlen=KEPT)
        self._skipped_first = False
        self._slow_for: dict[int, int] = {}
        """Rank -> windows in a row in which it was slow, or, once it is named, was not."""
        self.named: dict[int, SlowRank] = {}
        self._link = LinkWait()

    @property
    def newest(self) -> Window:
        """The newest window; empty before the first one."""
        return self._windows[-1] if self._windows else {}

    def look(self, rows: Mapping[int, Beat], now_s: float) -> list[Notice]:
        """What the rows of the running ranks say now. Call it about once a second."""
        window = self._reader.read(rows, now_s) if len(rows) > 1 else None
        if window is None:
            return []
        if not self._skipped_first or (self._windows and self._windows[0].keys() != window.keys()):
            self._skipped_first = True
            self._windows.clear()
            return []
        return self.judge(window)

    def judge(self, window: Window) -> list[Notice]:
        """The notices of one more window."""
        self._windows.append(window)
        if len(self._windows) < LEAST_KNOWN:
            return []
        limit = limit_learnt(self._windows)
        slow, above = slow_in(window, limit), slow_in(window, 1 + 0.6 * (limit - 1))
        notices = [notice for rank in window if (notice := self._follow(rank, slow, above)) is not None]
        if not self.named:
            link = self._link.add(window, disturbed=bool(above))
            notices += [link] if link is not None else []
        return notices

    def _follow(self, rank: int, slow: Mapping[int, SlowRank], above: Mapping[int, SlowRank]) -> Notice | None:
        """A named rank is over it once it stays clearly below the limit."""
        named = rank in self.named
        changes = rank not in above if named else rank in slow
        self._slow_for[rank] = self._slow_for.get(rank, 0) + 1 if changes else 0
        if self._slow_for[rank] < IN_A_ROW:
            return None
        self._slow_for[rank] = 0
        if named:
            cause = self.named.pop(rank).cause
            return Notice("straggler_over", rank, f"rank {rank} keeps up with the others again", {"cause": cause})
        self.named[rank] = slow[rank]
        return self._name(slow[rank])

    def _name(self, found: SlowRank) -> Notice:
        what = {"compute": "computes", "data": "loads data", "network": "starts the sum of gradients"}[found.cause]
        hint = self._hint(found.rank)
        text = (
            f"rank {found.rank} is a straggler ({found.cause}): it {what} {ms(found.own_s)} an iteration, the others "
            f"{ms(found.others_s)}; they wait {ms(found.lag_s)} for it{'; ' if hint else ''}{hint}"
        )
        facts = {"cause": found.cause, "own_s": found.own_s, "others_s": found.others_s, "lag_s": found.lag_s}
        return Notice("straggler", found.rank, text, {name: _rounded(fact) for name, fact in facts.items()})


class LinkWait:
    """Follows the shortest wait of any rank: the one that nobody else causes, so it is the link's.

    Which end of a link is slow cannot be read from it, and a link that was slow from the start is not noticed.
    """

    def __init__(self) -> None:
        self._waits_s: list[float] = []
        self._healthy_s = 0.0
        self._in_a_row, self._slow = 0, False

    def add(self, window: Window, *, disturbed: bool) -> Notice | None:
        """One more window. `disturbed`: a rank was slow in it."""
        wait_s = min(split.wait_s for split in window.values())
        iteration_s = max(split.iteration_s for split in window.values())
        if len(self._waits_s) < BASELINE:
            self._waits_s += [] if disturbed else [wait_s]
            self._healthy_s = median(self._waits_s) if self._waits_s else 0.0
            return None
        excess_s = wait_s - self._healthy_s
        least_s = max(LEAST_S, (RATIO - 1) * (iteration_s - excess_s), NOISES * noise([self._waits_s]))
        changes = (excess_s < 0.6 * least_s) if self._slow else (excess_s > least_s and not disturbed)
        self._in_a_row = self._in_a_row + 1 if changes else 0
        if self._in_a_row < IN_A_ROW:
            return None
        self._in_a_row, self._slow = 0, not self._slow
        facts = {"cause": "network", "wait_s": round(wait_s, 6), "before_s": round(self._healthy_s, 6)}
        if not self._slow:
            return Notice("straggler_over", None, "the link between the ranks is as fast as before", facts)
        text = (
            f"the link between the ranks is slow (network): every rank waits {ms(wait_s)} an iteration, "
            f"{ms(self._healthy_s)} before; the times do not say at which rank"
        )
        return Notice("straggler", None, text, facts)


def ms(seconds: float) -> str:
    """'31 ms', '0.4 ms', '2.5 s'."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.0095 else f"{1000 * seconds:.1f} ms"


def _rounded(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value
