"""What all ranks must agree on at every update, carried by the tail of the last gradient bucket.

The tail has the gradients' own type (float32 or float64), which holds counts exactly up to 2**24. It is a sum over
ranks like everything else in the bucket, so a flag is "how many ranks say so", and each rank has a slot of its own
for its fault. No collective is spent on it, and the host reads it one update later, without waiting.

    host facts, known when the bucket is sent     | device facts
    count | stop | int | save | time | retry |    | loss and metric sums | non-finite loss of each rank
    metric counts                                 |
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ranks.engine.loss import Loss

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
        return [float(getattr(self, name)) for name in FLAGS]


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
        return bool(self.non_finite_ranks) or self.flags.retry or self.grad_norm != self.grad_norm or self.grad_norm == float("inf")


class VoteLayout:
    """Slots of the tail for `size` ranks."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.first_flag = 1
        self.first_count = 1 + len(FLAGS)
        self.num_host = self.first_count + MAX_METRICS
        self.first_sum = self.num_host
        self.first_fault = self.first_sum + MAX_METRICS
        self.length = self.first_fault + size

    def read(self, numbers: list[float], grad_norm: float, names: list[str]) -> Vote:
        """Numbers of the summed tail -> a vote."""
        counts = numbers[self.first_count : self.first_count + len(names)]
        sums = numbers[self.first_sum : self.first_sum + len(names)]
        return Vote(
            count=round(numbers[0]),
            flags=Flags(*(numbers[self.first_flag + i] > 0 for i in range(len(FLAGS)))),
            values={name: s / c if c else float("nan") for name, s, c in zip(names, sums, counts, strict=True)},
            grad_norm=grad_norm,
            non_finite_ranks=[r for r in range(self.size) if not numbers[self.first_fault + r] == 0.0],
        )

    def add(self, tail: Tensor, host: Tensor, rank: int, found: Found) -> None:
        """Add this rank's facts, and what its passes found, to its tail; nothing waits for the device.

        `host`: float[num_host], pinned where the device is not the CPU.
        """
        host[0] = found.count
        host[self.first_count : self.first_count + len(found.host_counts)] = torch.tensor(
            found.host_counts, dtype=host.dtype
        )
        tail[: self.num_host].add_(host.to(tail.device, non_blocking=True))
        if found.sums:
            stacked = torch.stack(found.sums).to(tail.dtype)
            tail[self.first_sum : self.first_sum + len(stacked)].add_(stacked)
            tail[self.first_fault + rank].add_((~torch.isfinite(stacked[0])).to(tail.dtype))
            for index, count in found.device_counts.items():
                tail[self.first_count + index].add_(count)


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
