"""When a run writes a checkpoint: every so many iterations or seconds, and when the loop asks for
one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ranks.engine.config import SaveInterval


class SavePolicy:
    """`score`: of the checkpoint to come. `saved_iteration`: of the newest checkpoint.
    `unlogged_s`: seconds of saves that no row of metrics.jsonl has yet."""

    def __init__(self, save_every: str, saved_iteration: int, clock: Callable[[], float] = time.perf_counter) -> None:
        """`save_every`: '500' (iterations), or '30s', '5m', '1h'."""
        self.interval, self.clock = SaveInterval.parse(save_every, "--save-every"), clock
        self.saved_iteration, self.saved_at_s = saved_iteration, clock()
        self.requested, self.unlogged_s = False, 0.0
        self.score: float | None = None

    def request(self, score: float | None) -> None:
        """The loop asks for a checkpoint at the end of this iteration. A score that is not finite
        counts as none."""
        self.requested = True
        self.score = score if score is not None and math.isfinite(score) else None

    def overdue(self) -> bool:
        """Whether the last checkpoint is older than the interval. The first rank asks for a save by
        its vote."""
        interval_s = self.interval.interval_s
        return interval_s is not None and self.clock() - self.saved_at_s > interval_s

    def due(self, iteration: int, *, agreed: bool) -> bool:
        """Whether to save now, with `iteration` iterations finished. `agreed`: all ranks agreed to
        save or to end."""
        by_count = self.interval.iterations is not None and iteration % self.interval.iterations == 0
        return iteration != self.saved_iteration and (self.requested or by_count or agreed)

    def done(self) -> None:
        """All requests are met; the interval starts again."""
        self.requested, self.score, self.saved_at_s = False, None, self.clock()

    def take_unlogged_s(self) -> float:
        """Seconds of saves for the next row."""
        seconds, self.unlogged_s = self.unlogged_s, 0.0
        return seconds
