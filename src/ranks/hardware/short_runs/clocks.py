"""Two clocks of one rank: its own work, and the machine's time. On CUDA both are events of the device's stream."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

import torch

T = TypeVar("T")
Mark = float | torch.cuda.Event


class RankClock(ABC):
    """Marks points in time. Their seconds are read afterwards, so that no mark waits for the device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._is_cuda = device.type == "cuda"

    def mark(self) -> Mark:
        """Now; on CUDA when the device has done all that is queued."""
        if not self._is_cuda:
            return self._now_s()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    @abstractmethod
    def _now_s(self) -> float: ...

    @abstractmethod
    def collective(self, act: Callable[[], T], began: Mark) -> tuple[T, Mark]:
        """What a part of a collective returns, and when it has ended. `began`: the mark before it."""

    @abstractmethod
    def seconds(self, mark: Mark) -> float:
        """Of a mark. On CUDA, call it after a synchronization."""


class WorkClock(RankClock):
    """Seconds of the rank's own work since the start. The time inside collectives does not count."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self._paused_s = 0.0
        self._began = self.mark()

    def _now_s(self) -> float:
        return time.perf_counter() - self._paused_s

    def collective(self, act: Callable[[], T], began: Mark) -> tuple[T, Mark]:
        before_s = time.perf_counter()
        result = act()
        self._paused_s += time.perf_counter() - before_s
        return result, began

    def seconds(self, mark: Mark) -> float:
        return _between_s(self._began, mark)


class WallClock(RankClock):
    """Seconds of the machine's monotonic clock, which is the same for all processes of one machine.

    On CUDA the host's clock is read at an idle device before the first mark and after the last one (`stop`); between
    them the device's clock counts. So the times of two devices agree within some 10 microseconds only."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self._start = self._stop = self._both()

    def _now_s(self) -> float:
        return time.perf_counter()

    def _both(self) -> tuple[float, Mark]:
        """The same moment by the host's clock and as a mark."""
        if self._is_cuda:
            torch.cuda.synchronize(self.device)
        return time.perf_counter(), self.mark()

    def stop(self) -> None:
        """Call it after the last mark."""
        self._stop = self._both()
        if self._is_cuda:
            torch.cuda.synchronize(self.device)

    def collective(self, act: Callable[[], T], began: Mark) -> tuple[T, Mark]:
        return act(), self.mark()

    def seconds(self, mark: Mark) -> float:
        if isinstance(mark, float):
            return mark
        (start_s, start), (stop_s, stop) = self._start, self._stop
        whole_s = _between_s(start, stop)
        rate = (stop_s - start_s) / whole_s if whole_s > 0 else 1.0
        return start_s + rate * _between_s(start, mark)


def _between_s(before: Mark, after: Mark) -> float:
    if isinstance(before, torch.cuda.Event) and isinstance(after, torch.cuda.Event):
        return before.elapsed_time(after) / 1000
    assert isinstance(before, float)
    assert isinstance(after, float)
    return after - before
