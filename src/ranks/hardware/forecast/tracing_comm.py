"""One rank of several, alone: it calls the collectives of a real run, and they are recorded instead of sent.

The rank carries its own share of the items, so its passes have the size that they will have. As the result of a
collective it gets what all ranks would have sent if they had the same values as this one. The weights that come of it
are meaningless; the times are not.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from ranks.engine.distributed.comm import Comm, Pending
from ranks.engine.liveness.beats import Collective
from ranks.hardware.forecast.trace import Call

T = TypeVar("T")
Mark = float | torch.cuda.Event
HOST_NUMBER_BYTES = 8


class Stopwatch:
    """Time of the rank's own work: by the host's clock without the time spent in `paused`, or on CUDA by events."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._paused_s = 0.0
        self._began = self.mark()

    def mark(self) -> Mark:
        """A point in time."""
        if not self._cuda:
            return time.perf_counter() - self._paused_s
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def paused(self, act: Callable[[], T]) -> T:
        """What `act` returns; its time does not count."""
        began = time.perf_counter()
        result = act()
        self._paused_s += time.perf_counter() - began
        return result

    def seconds(self, mark: Mark) -> float:
        """From the start to a mark. On CUDA, call it after the device has passed the mark."""
        if isinstance(mark, torch.cuda.Event) and isinstance(self._began, torch.cuda.Event):
            return self._began.elapsed_time(mark) / 1000
        assert isinstance(mark, float)
        assert isinstance(self._began, float)
        return mark - self._began


@dataclass
class RecordedCall:
    """A collective under way. `wait`: when the rank asked for its result."""

    kind: Collective
    num_bytes: int
    start: Mark
    wait: Mark | None = None
    stopwatch: Stopwatch | None = None

    def done(self) -> None:
        """The rank asks for the result."""
        assert self.stopwatch is not None
        self.wait = self.wait or self.stopwatch.mark()


class _TracedWork:
    """What `sum_async` returns."""

    def __init__(self, call: RecordedCall) -> None:
        self._call = call

    def wait(self) -> None:
        self._call.done()


class TracingComm(Comm):
    """The collectives of rank 0 of `size` ranks. `iteration`: returns another object in each iteration; `marks` has the
    first collective of each."""

    def __init__(self, size: int, device: torch.device) -> None:
        super().__init__(0, size, staged=False)
        self.stopwatch = Stopwatch(device)
        self.calls: list[RecordedCall] = []
        self.marks: list[Mark] = []
        self.iteration: Callable[[], object] = lambda: None
        self._current: object = None
        self._sent: Sequence[Tensor] | None = None

    def sum_async(self, tensor: Tensor) -> Pending:
        call = self._begin(Collective.ALL_REDUCE, tensor.numel() * tensor.element_size())
        if self.size > 1:
            self.stopwatch.paused(lambda: tensor.mul_(self.size))
        return _TracedWork(call)

    def exchange(self, out: Tensor, inp: Tensor, out_sizes: list[int], in_sizes: list[int]) -> None:
        self._blocking(Collective.ALL_TO_ALL, inp.numel() * inp.element_size())
        copy = self.stopwatch.paused(inp.clone)
        self._sent = torch.split(copy, in_sizes)
        self.stopwatch.paused(out.zero_)

    def gather_equal(self, mine: Tensor) -> list[Tensor]:
        self._blocking(Collective.ALL_GATHER, mine.numel() * mine.element_size())
        sent, self._sent = self._sent, None
        return self.stopwatch.paused(lambda: self._gathered(mine, sent))

    def _gathered(self, mine: Tensor, sent: Sequence[Tensor] | None) -> list[Tensor]:
        """Every rank's tensor. After an exchange, which the exact sum makes, each rank returns the sum of what it was
        sent: the vote lies in the part of the last rank."""
        if sent is None:
            return [mine.clone() for _ in range(self.size)]
        sums = [part.view(len(sent[0]) // len(mine), -1).sum(0) * self.size for part in sent]
        return [torch.cat([part, part.new_zeros(len(mine) - len(part))]) for part in sums]

    def broadcast(self, tensor: Tensor, source: int = 0) -> None:
        self._blocking(Collective.BROADCAST, tensor.numel() * tensor.element_size())

    def gather_objects(self, mine: T) -> list[T]:
        if self.size > 1:
            self._blocking(Collective.GATHER_OBJECTS, len(pickle.dumps(mine)))
        return [mine] * self.size

    def sum_host(self, values: list[float]) -> list[float]:
        if self.size > 1:
            self._blocking(Collective.SUM_HOST, HOST_NUMBER_BYTES * len(values))
        return [value * self.size for value in values]

    def max_host(self, value: float) -> float:
        if self.size > 1:
            self._blocking(Collective.MAX_HOST, HOST_NUMBER_BYTES)
        return value

    def _begin(self, kind: Collective, num_bytes: int) -> RecordedCall:
        call = RecordedCall(kind, num_bytes, self.stopwatch.mark(), stopwatch=self.stopwatch)
        self.calls.append(call)
        current = self.iteration()
        if current is not self._current:
            self._current = current
            self.marks.append(call.start)
        return call

    def _blocking(self, kind: Collective, num_bytes: int) -> None:
        call = self._begin(kind, num_bytes)
        call.wait = call.start

    def read(self) -> list[Call]:
        """All calls with their times, in seconds since the start. On CUDA, call it after a synchronization."""
        seconds = self.stopwatch.seconds
        return [
            Call(call.kind, call.num_bytes, seconds(call.start), seconds(call.wait or call.start))
            for call in self.calls
        ]
