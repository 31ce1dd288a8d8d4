"""A long series in few buckets, so that a page shows a million iterations in 500 points.

A bucket holds the same number of neighbouring iterations as every other one. When there are too many buckets, each two
neighbours become one. So a new row changes the last bucket only, or, seldom, all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

MOST_BUCKETS = 500


class _Bucket(Protocol):
    @property
    def rows(self) -> int: ...


B = TypeVar("B", bound=_Bucket)


class Extremes(NamedTuple):
    """The values of a metric over some iterations: a spike stays visible as the highest or lowest of them."""

    first: float
    last: float
    """Iterations."""
    rows: int
    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, iteration: float, value: float) -> Extremes:
        """One value."""
        return cls(iteration, iteration, 1, value, value, value)

    def plus(self, other: Extremes) -> Extremes:
        """Both together; `other` follows."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        rows = self.rows + other.rows
        mean = self.mean * (self.rows / rows) + other.mean * (other.rows / rows)  # a sum could overflow
        return Extremes(self.first, other.last, rows, min(max(mean, low), high), low, high)

    def point(self) -> list[float]:
        """[iteration, value], or [iteration, mean, lowest, highest] of values that differ."""
        middle = self.first / 2 + self.last / 2
        values = [self.mean] if self.low == self.high else [self.mean, self.low, self.high]
        return [_short(middle), *map(_short, values)]


class PhaseSeconds(NamedTuple):
    """The mean seconds of each phase over some iterations."""

    first: float
    last: float
    rows: int
    seconds: Mapping[str, float]

    def plus(self, other: PhaseSeconds) -> PhaseSeconds:
        """Both together; `other` follows."""
        rows = self.rows + other.rows
        mine, others = self.rows / rows, other.rows / rows
        names = dict.fromkeys((*self.seconds, *other.seconds))
        mean = {n: self.seconds.get(n, 0.0) * mine + other.seconds.get(n, 0.0) * others for n in names}
        return PhaseSeconds(self.first, other.last, rows, mean)

    def point(self, names: list[str]) -> list[float]:
        """[iteration, seconds of each of these phases]."""
        return [_short(self.first / 2 + self.last / 2), *(_short(self.seconds.get(name, 0.0)) for name in names)]


class Thinned(Generic[B]):
    """The buckets of a growing series, and when each one changed."""

    def __init__(self, plus: Callable[[B, B], B], most: int = MOST_BUCKETS) -> None:
        """`plus`: joins two neighbours. `most`: an even number of buckets."""
        self._plus, self._most = plus, most
        self._buckets: list[B] = []
        self._changed: list[int] = []
        self._full = 1
        """Rows in a full bucket."""
        self.newest: B | None = None
        """The row that was added last."""

    def add(self, row: B, change: int) -> None:
        """`row`: a bucket of one row. `change`: the number of this change of the data, which grows."""
        self.newest = row
        if self._buckets and self._buckets[-1].rows < self._full:
            self._buckets[-1] = self._plus(self._buckets[-1], row)
            self._changed[-1] = change
            return
        if len(self._buckets) == self._most:
            self._buckets = list(map(self._plus, self._buckets[::2], self._buckets[1::2]))
            self._changed = [change] * len(self._buckets)
            self._full *= 2
        self._buckets.append(row)
        self._changed.append(change)

    def since(self, change: int) -> tuple[int, list[B]]:
        """(how many buckets at the start are as they were at that change, all after them)."""
        start = len(self._buckets)
        while start and self._changed[start - 1] > change:
            start -= 1
        return start, self._buckets[start:]


def _short(value: float) -> float:
    """Seven digits are more than a screen shows, and half as long in JSON."""
    return float(f"{value:.7g}")
