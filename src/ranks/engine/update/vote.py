"""What all ranks must agree on at every update, carried by the tail of the last gradient bucket.

The tail has the gradients' own type (float32 or float64), which holds counts exactly up to 2**24.
Like everything else in the bucket it is summed over ranks: a request is the number of ranks that
make it, and each rank has a separate slot for its non-finite loss. The vote needs no extra
collective, and the host reads it one update later, without waiting.

    slots                                      known
    loss sum and metric sums                   on the device
    metric counts, items                       to the host, when the bucket is sent
    sigterm, sigint, save, time_up, retry      to the host, when the bucket is sent
    non-finite loss, one slot a rank           on the device
    norm                                       on the device, after the reduction

The slot of a rank is 0 while its loss is finite, and NaN otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ranks.engine.distributed.requests import NAMES, Requests
from ranks.engine.update.loss import Loss, check_total_count

MAX_METRICS = 24


@dataclass(frozen=True)
class Vote:
    """The sum over ranks of one update, on the host. `values`: metric name -> mean over its
    count."""

    count: float
    """Items of all ranks, a whole number unless a Loss counts otherwise."""
    requests: Requests
    values: dict[str, float]
    grad_norm: float
    non_finite_ranks: list[int]
    """Ranks whose loss was not finite."""

    @property
    def skipped(self) -> bool:
        """The update was not made: a loss or the gradient was not finite, or a rank ran out of
        memory."""
        return (
            bool(self.non_finite_ranks)
            or self.requests.retry
            or self.grad_norm != self.grad_norm
            or self.grad_norm == float("inf")
        )


class VoteLayout:
    """The index of each slot of the tail, for `size` ranks."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.first_sum = 0
        self.first_count = MAX_METRICS
        self.items = 2 * MAX_METRICS
        self.first_request = self.items + 1
        self.retry = self.items + len(NAMES)
        self.first_non_finite = self.retry + 1
        self.norm = self.first_non_finite + size
        self.length = self.norm + 1

    def read(self, numbers: list[float], names: list[str]) -> Vote:
        """The numbers of the summed tail -> a vote."""
        sums, counts = numbers[self.first_sum :], numbers[self.first_count :]
        non_finite = numbers[self.first_non_finite : self.norm]
        return Vote(
            count=numbers[self.items],
            requests=Requests.of(numbers[self.first_request : self.first_non_finite]),
            values={name: s / c if c else math.nan for name, s, c in zip(names, sums, counts, strict=False)},
            grad_norm=numbers[self.norm],
            non_finite_ranks=[rank for rank, number in enumerate(non_finite) if number != 0.0],
        )


class VoteSlots:
    """This rank's tail, with views of the slots that every update needs.

    `items`: 0-d, the count of all items. `norm`: 0-d.

    The arithmetic here is on 0-d tensors only: a Python number in an operation costs the host two
    more microseconds, at every step.
    """

    def __init__(self, layout: VoteLayout, tail: Tensor, rank: int) -> None:
        self.layout, self.tail = layout, tail
        self.items, self.norm = tail[layout.items], tail[layout.norm]
        self._sums = [tail[:num] for num in range(MAX_METRICS + 1)]
        self._flags = tail[layout.retry : layout.length]
        self._flag_weights = torch.ones_like(self._flags)
        self._flag_weights[-1] = 0.0
        self._zero = torch.zeros_like(self.norm)
        self._skip = torch.zeros_like(self.norm, dtype=torch.float32)
        self._non_finite = tail[layout.first_non_finite + rank]
        self._host = tail[layout.first_count : layout.first_non_finite]
        self.max_count = 2**24 if tail.dtype == torch.float32 else 2**53
        """The largest count that the tail holds exactly."""
        self._view = self._host.numpy() if tail.device.type == "cpu" else None

    def skip(self) -> Tensor:
        """0-d float32, valid until the next call: 1 where the summed tail says that the update must
        be skipped, else 0.

        The sum of retry and of the non-finite slots, plus 0 times the norm, which is NaN where the
        norm is not finite, is 0 while all is well.
        """
        found = torch.dot(self._flags, self._flag_weights)
        return torch.ne(found, self._zero, out=self._skip)

    def fill(self, totals: PassTotals, requests: Requests, update: int) -> None:
        """Write the totals of this rank's passes and its requests into the zeroed tail, without
        waiting. Raises UserError where the count is too large for it."""
        if totals.count > self.max_count:
            check_total_count(totals.count, self.max_count, update)
        missing = [0.0] * (MAX_METRICS - len(totals.host_counts))
        numbers = [*totals.host_counts, *missing, totals.count, *requests.numbers()]
        if self._view is not None:
            self._view[:] = numbers
        else:
            self._host.copy_(torch.tensor(numbers, dtype=self.tail.dtype, pin_memory=True), non_blocking=True)
        if totals.sums:
            torch.stack(totals.sums, out=self._sums[len(totals.sums)])
            torch.mul(totals.sums[0], self._zero, out=self._non_finite)  # 0 * NaN and 0 * infinity are NaN
            for index, count in totals.device_counts.items():
                self.tail[self.layout.first_count + index].add_(count)


class PassTotals:
    """Loss and metrics of one or more passes, added up on the device."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.count: float = 0
        self.sums: list[Tensor] = []
        self.host_counts: list[float] = []
        self.device_counts: dict[int, Tensor] = {}

    def add(self, loss: Loss) -> None:
        """Raises ValueError where a pass has other metrics than the one before it, or too many."""
        names, sums, counts = loss.parts()
        if not self.names:
            if len(names) > MAX_METRICS:
                raise ValueError(f"a Loss carries at most {MAX_METRICS - 1} metrics, this one has {len(names) - 1}")
            self.names, self.sums, self.host_counts = names, sums, [0.0] * len(names)
        elif names != self.names:
            raise ValueError(f"the metrics of a Loss must be the same in every pass: {self.names}, then {names}")
        else:
            self.sums = [a + b for a, b in zip(self.sums, sums, strict=True)]
        self.count += loss.count
        for index, count in enumerate(counts):
            if isinstance(count, Tensor):
                before = self.device_counts.get(index)
                self.device_counts[index] = count if before is None else before + count
            else:
                self.host_counts[index] += count
