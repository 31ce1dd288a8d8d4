"""A clock that moves only when a test says so."""

from __future__ import annotations


class FakeClock:
    """Seconds that `advance` adds; each reading adds `tick_s` as well."""

    def __init__(self, tick_s: float = 0.0) -> None:
        self.now_s, self.tick_s = 1000.0, tick_s

    def __call__(self) -> float:
        self.now_s += self.tick_s
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
