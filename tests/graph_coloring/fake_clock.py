"""A clock that counts its readings, so that tests of time limits do not depend on the speed of the
machine."""

from __future__ import annotations

import time

import pytest


class FakeClock:
    """Advances by `tick_s` with each reading; after `jump_after` readings it jumps far ahead."""

    def __init__(self, tick_s: float = 0.0, jump_after: int | None = None) -> None:
        self.tick_s, self.jump_after = tick_s, jump_after
        self.readings = 0

    def __call__(self) -> float:
        self.readings += 1
        jumped = self.jump_after is not None and self.readings > self.jump_after
        return self.readings * self.tick_s + 1e6 * jumped

    def use(self, monkeypatch: pytest.MonkeyPatch) -> FakeClock:
        """Replaces time.perf_counter."""
        monkeypatch.setattr(time, "perf_counter", self)
        return self
