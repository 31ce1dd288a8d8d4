"""When all ranks look up from a phase of many steps (eval_mode, a long evaluation): together, about once a second."""

from __future__ import annotations

import time

from ranks.engine.distributed.comm import Comm

INTERVAL_S = 1.0
GROWTH = 8


class PollInterval:
    """Of one phase, of which every rank makes the same steps.

    Nobody knows beforehand how long a step takes. So the ranks look up after the first one, and agree each time, from
    the seconds of the slowest since the last, after how many steps to do so again: at most 8 times as many as before.
    """

    def __init__(self, comm: Comm) -> None:
        self.comm = comm
        self._steps, self._every, self._since = 0, 1, time.perf_counter()

    def due(self) -> bool:
        """Whether to look up now. Every rank calls it once after each step, and all get the same answer."""
        self._steps += 1
        if self._steps < self._every:
            return False
        now = time.perf_counter()
        step_s = self.comm.max_host(now - self._since) / self._every
        self._every = max(1, min(GROWTH * self._every, int(INTERVAL_S / max(step_s, 1e-9))))
        self._steps, self._since = 0, now
        return True
