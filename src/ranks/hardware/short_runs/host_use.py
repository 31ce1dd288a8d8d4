"""How many CPU cores a rank keeps busy: its own process and all below it, such as workers that load data and
environments. A thread looks at them when an iteration begins, so that the start and the end of a run do not count."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple

import psutil

POLL_S = 0.02
BETWEEN_S = 0.5
"""To look at all processes takes some milliseconds."""


class CpuSample(NamedTuple):
    """Seconds by the clock, and CPU seconds of all processes so far."""

    clock_s: float
    cpu_s: float


class HostUse:
    """Samples the CPU time inside a `with` block. `iteration` returns another object in each iteration."""

    def __init__(self, iteration: Callable[[], object]) -> None:
        self._iteration = iteration
        self._samples: list[CpuSample] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="ranks-host-use", daemon=True)

    def __enter__(self) -> HostUse:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def cores(self) -> float | None:
        """Mean of the second half of the run; None where it had too few iterations."""
        return busy_cores(self._samples)

    def _follow(self) -> None:
        seen = self._iteration()
        while not self._ended.wait(POLL_S):
            now = self._iteration()
            if now is not seen:
                seen = now
                if not self._samples or time.monotonic() - self._samples[-1].clock_s >= BETWEEN_S:
                    self._samples.append(CpuSample(time.monotonic(), _cpu_s()))


def busy_cores(samples: Sequence[CpuSample]) -> float | None:
    """CPU seconds in a second, from the middle of the samples to the last one; None with fewer than two."""
    if len(samples) < 2:
        return None
    last = samples[-1]
    middle_s = (samples[0].clock_s + last.clock_s) / 2
    begin = min(samples[:-1], key=lambda sample: abs(sample.clock_s - middle_s))
    return max(0.0, last.cpu_s - begin.cpu_s) / (last.clock_s - begin.clock_s)


def _cpu_s() -> float:
    """Of this process and of all below it."""
    total_s = time.process_time()
    with suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                times = child.cpu_times()
                total_s += times.user + times.system
    return total_s
