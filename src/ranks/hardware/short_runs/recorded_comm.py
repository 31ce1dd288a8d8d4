"""Record the collectives of a rank: their kinds, sizes and times. The collectives themselves are those of another
`Comm`."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from ranks.engine.distributed.comm import Comm, Pending
from ranks.engine.liveness.beats import Collective
from ranks.hardware.short_runs.clocks import Mark, RankClock

T = TypeVar("T")
HOST_NUMBER_BYTES = 8


@dataclass
class RecordedCall:
    """One collective. `issued`: when the call that starts it has returned; `wait`: when the rank asks for the result;
    `end`: when it has it."""

    kind: Collective
    num_bytes: int
    on_host: bool
    """Of tensors in host memory, and of all small values: they do not use the link between devices."""
    start: Mark
    issued: Mark
    wait: Mark
    end: Mark


class _RecordedWork:
    """What `sum_async` returns."""

    def __init__(self, work: Pending, call: RecordedCall, clock: RankClock) -> None:
        self._work, self._call, self._clock = work, call, clock

    def wait(self) -> None:
        self._call.wait = self._clock.mark()
        _, self._call.end = self._clock.collective(self._work.wait, self._call.wait)


class RecordedComm(Comm):
    """The collectives of `inner`, recorded. With one rank nothing is recorded.

    `iteration` returns another object in each iteration. `first_calls` has the index of the first collective of each,
    and `iterations` the objects.
    """

    def __init__(self, inner: Comm, clock: RankClock) -> None:
        super().__init__(inner.rank, inner.size, staged=inner.staged)
        self.inner, self.clock = inner, clock
        self.calls: list[RecordedCall] = []
        self.first_calls: list[int] = []
        self.iterations: list[object] = []
        self.iteration: Callable[[], object] = lambda: None

    def sum_async(self, tensor: Tensor) -> Pending:
        if self.size == 1:
            return self.inner.sum_async(tensor)
        call = self._begin(Collective.ALL_REDUCE, _bytes_of(tensor), on_host=_is_on_host(tensor))
        work, call.issued = self.clock.collective(lambda: self.inner.sum_async(tensor), call.start)
        call.wait = call.end = call.issued
        return _RecordedWork(work, call, self.clock)

    def exchange(self, out: Tensor, inp: Tensor, out_sizes: list[int], in_sizes: list[int]) -> None:
        self._blocking(
            Collective.ALL_TO_ALL,
            lambda: _bytes_of(inp),
            lambda: self.inner.exchange(out, inp, out_sizes, in_sizes),
            on_host=_is_on_host(inp),
        )

    def gather_equal(self, mine: Tensor) -> list[Tensor]:
        return self._blocking(
            Collective.ALL_GATHER,
            lambda: _bytes_of(mine),
            lambda: self.inner.gather_equal(mine),
            on_host=_is_on_host(mine),
        )

    def broadcast(self, tensor: Tensor, source: int = 0) -> None:
        self._blocking(
            Collective.BROADCAST,
            lambda: _bytes_of(tensor),
            lambda: self.inner.broadcast(tensor, source),
            on_host=_is_on_host(tensor),
        )

    def gather_objects(self, mine: T) -> list[T]:
        return self._blocking(
            Collective.GATHER_OBJECTS, lambda: len(pickle.dumps(mine)), lambda: self.inner.gather_objects(mine)
        )

    def sum_host(self, values: list[float]) -> list[float]:
        return self._blocking(
            Collective.SUM_HOST, lambda: HOST_NUMBER_BYTES * len(values), lambda: self.inner.sum_host(values)
        )

    def max_host(self, value: float) -> float:
        return self._blocking(Collective.MAX_HOST, lambda: HOST_NUMBER_BYTES, lambda: self.inner.max_host(value))

    def _begin(self, kind: Collective, num_bytes: int, *, on_host: bool) -> RecordedCall:
        current = self.iteration()
        if not self.iterations or current is not self.iterations[-1]:
            self.iterations.append(current)
            self.first_calls.append(len(self.calls))
        now = self.clock.mark()
        call = RecordedCall(kind, num_bytes, on_host, now, now, now, now)
        self.calls.append(call)
        return call

    def _blocking(
        self, kind: Collective, num_bytes: Callable[[], int], act: Callable[[], T], *, on_host: bool = True
    ) -> T:
        """A collective that returns with its result."""
        if self.size == 1:
            return act()
        call = self._begin(kind, num_bytes(), on_host=on_host)
        result, call.end = self.clock.collective(act, call.start)
        return result


def _is_on_host(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu"


def _bytes_of(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
