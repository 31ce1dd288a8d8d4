"""How often the ranks look for a stop request in a phase of many steps: together, about once a
second."""

from __future__ import annotations

import time
from collections.abc import Callable

from ranks.engine.distributed.comm import Comm
from ranks.engine.liveness.heartbeat import heartbeat

INTERVAL_S = 1.0
GROWTH = 8


class PollInterval:
    """Decides after which steps of a phase all ranks poll. Every rank makes the same steps.

    The time of a step is not known beforehand. So the ranks poll after the first step. At each poll
    they agree on the number of steps until the next one, from the seconds of the slowest rank: at
    most 8 times as many as before.
    """

    def __init__(self, comm: Comm, clock: Callable[[], float] = time.perf_counter) -> None:
        self.comm, self.clock = comm, clock
        self._steps, self._every, self._since = 0, 1, clock()

    def due(self) -> bool:
        """Whether to poll now. Every rank calls it once after each step, and all get the same
        answer."""
        heartbeat.beat()
        self._steps += 1
        if self._steps < self._every:
            return False
        now = self.clock()
        step_s = self.comm.max_host(now - self._since) / self._every
        self._every = max(1, min(GROWTH * self._every, int(INTERVAL_S / max(step_s, 1e-9))))
        self._steps, self._since = 0, now
        return True
