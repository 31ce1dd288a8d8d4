"""What all ranks must agree on at every update, carried by the tail of the last gradient bucket.

The tail has the gradients' own type (float32 or float64), which holds counts exactly up to 2**24. It is a sum over
ranks like everything else in the bucket, so a flag is "how many ranks say so", and each rank has a slot of its own
for its fault. No collective is spent on it, and the host reads it one update later, without waiting.

    loss and metric sums | metric counts, items, term | int | save | time_up | retry | fault of each rank | norm
    found on the device  | host facts, known when the bucket is sent                 | on the device      | after it

A rank's fault slot is 0 while its loss is finite and NaN otherwise. The norm is filled in after the reduction.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ranks.engine.update.loss import Loss

MAX_METRICS = 24
FLAGS = ("term", "int", "save", "time_up", "retry")


@dataclass(frozen=True)
class Flags:
    """What one rank asks for."""

    term: bool = False
    int: bool = False
    save: bool = False
    time_up: bool = False
    retry: bool = False

    def numbers(self) -> list[float]:
        return [float(f) for f in (self.term, self.int, self.save, self.time_up, self.retry)]


NONE = Flags()


@dataclass(frozen=True)
class Vote:
    """The sum over ranks of one update, on the host. `values`: metric name -> mean over its count."""

    count: int
    flags: Flags
    values: dict[str, float]
    grad_norm: float
    non_finite_ranks: list[int]
    """Ranks whose loss was not finite."""

    @property
    def skipped(self) -> bool:
        """The update was not made: a loss or the gradient was not finite, or a rank ran out of memory."""
        return (
            bool(self.non_finite_ranks)
            or self.flags.retry
            or self.grad_norm != self.grad_norm
            or self.grad_norm == float("inf")
        )


class VoteLayout:
    """Slots of the tail for `size` ranks."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.first_sum = 0
        self.first_count = MAX_METRICS
        self.items = 2 * MAX_METRICS
        self.first_flag = self.items + 1
        self.retry = self.items + len(FLAGS)
        self.first_fault = self.retry + 1
        self.norm = self.first_fault + size
        self.length = self.norm + 1

    def read(self, numbers: list[float], names: list[str]) -> Vote:
        """Numbers of the summed tail -> a vote."""
        counts = numbers[self.first_count : self.first_count + len(names)]
        sums = numbers[self.first_sum : self.first_sum + len(names)]
        flags = numbers[self.first_flag : self.first_fault]
        return Vote(
            count=round(numbers[self.items]),
            flags=Flags(*(n > 0 for n in flags)) if any(flags) else NONE,
            values={name: s / c if c else float("nan") for name, s, c in zip(names, sums, counts, strict=True)},
            grad_norm=numbers[self.norm],
            non_finite_ranks=[r for r in range(self.size) if numbers[self.first_fault + r] != 0.0],
        )


class Ballot:
    """One rank's tail, with the parts that every update needs cut out once.

    `items`: 0-d, the count of all items. `guard`: sums to 0 unless the update must be skipped. `norm`: 0-d.
    """

    def __init__(self, layout: VoteLayout, tail: Tensor, rank: int) -> None:
        self.layout, self.tail = layout, tail
        self.items, self.norm = tail[layout.items], tail[layout.norm]
        self.guard = tail[layout.retry : layout.norm]
        self._fault = tail[layout.first_fault + rank]
        self._host = tail[layout.first_count : layout.first_fault]
        self._view = self._host.numpy() if tail.device.type == "cpu" else None

    def fill(self, found: Found, flags: Flags) -> None:
        """Write this rank's facts, and what its passes found, into its tail of zeros; nothing waits for the device."""
        facts = [*found.host_counts, *[0.0] * (MAX_METRICS - len(found.host_counts)), found.count, *flags.numbers()]
        if self._view is not None:
            self._view[:] = facts
        else:
            self._host.copy_(torch.tensor(facts, dtype=self.tail.dtype, pin_memory=True), non_blocking=True)
        if found.sums:
            torch.stack(found.sums, out=self.tail[: len(found.sums)])
            torch.mul(found.sums[0], 0, out=self._fault)
            for index, count in found.device_counts.items():
                self.tail[self.layout.first_count + index].add_(count)


class Found:
    """Loss and metrics of one or more passes, added up on the device."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.count = 0
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
