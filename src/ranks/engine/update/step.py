"""One update on its way: what it was computed from, and what its vote says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ranks.engine.distributed.session import PhaseTimes
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.work_times import Account
from ranks.engine.sharding.batch import MicroBatch, StepBatch
from ranks.engine.update.loss import Loss
from ranks.engine.update.step_clock import StepClock
from ranks.engine.update.vote import Vote, VoteLayout

ACCOUNTS = {"data": Account.DATA, "compute": Account.COMPUTE, "communication": Account.WAIT}
"""Of the phases of an update."""


class VoteCopy:
    """The summed tail of one update, on its way to the host. On CUDA the copy goes to pinned
    memory."""

    def __init__(self, numbers: Tensor, layout: VoteLayout, names: list[str]) -> None:
        self.device, self.layout, self.names = numbers, layout, names
        self.host, self._copied = numbers, None
        if numbers.device.type == "cuda":
            self.host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            self.host.copy_(numbers, non_blocking=True)
            self._copied = torch.cuda.Event()
            self._copied.record()

    def __getitem__(self, name: str) -> Tensor:
        """A mean over all ranks, 0-d on the device."""
        if name == "grad_norm":
            return self.device[self.layout.norm]
        index = self.names.index(name)
        return self.device[self.layout.first_sum + index] / self.device[self.layout.first_count + index]

    def read(self) -> Vote:
        """The vote; waits until the device has copied it."""
        if self._copied is not None:
            heartbeat.wait(Account.OTHER)  # the update's own times are added once it is read
            self._copied.synchronize()
            heartbeat.wait_over()
        return self.layout.read(self.host.tolist(), self.names)


class StepStats:
    """What one update computed. `stats["loss"]` is a 0-d tensor on the device; asking for it waits
    for nothing.

    `read()` gives the numbers, and waits until the device has come that far.
    """

    def __init__(self, copy: VoteCopy, clock: StepClock, times: PhaseTimes, item: str | None) -> None:
        """`times`: of the iteration that the update belongs to; `item`: what the batch's items are
        counted as there."""
        self.copy, self._clock, self._times, self._item = copy, clock, times, item
        self._vote: Vote | None = None

    def __getitem__(self, name: str) -> Tensor:
        return self.copy[name]

    @property
    def resolved(self) -> bool:
        """Whether the vote was read."""
        return self._vote is not None

    def read(self) -> Vote:
        """The numbers, on the host."""
        if self._vote is None:
            self._vote = self.copy.read()
            seconds = self._clock.read()
            for phase, phase_s in seconds.items():
                self._times.seconds[phase] += phase_s
            if self._clock.on_device:
                heartbeat.device_worked({account: seconds[phase] for phase, account in ACCOUNTS.items()})
            if self._item is not None and not self._vote.requests.retry:
                self._times.items[self._item] += self._vote.count
        return self._vote

    def repeated(self, copy: VoteCopy) -> None:
        """The update was made again in smaller micro-batches; the new vote counts."""
        self.copy, self._vote = copy, None


@dataclass
class PendingUpdate:
    """One update whose vote has not been read: loss function, this rank's batch, its number, and
    its time."""

    loss_fn: Callable[[Any, Any], Loss]
    batch: StepBatch[Any]
    number: int
    clock: StepClock
    times: PhaseTimes
    too_large: MicroBatch | None = None
    """The micro-batch for which this rank's memory did not suffice in the last attempt."""
    loss_name: str = field(init=False)
    """Module and name of the loss function."""

    def __post_init__(self) -> None:
        inner = self.loss_fn.func if isinstance(self.loss_fn, partial) else self.loss_fn
        self.loss_name = f"{inner.__module__}.{getattr(inner, '__qualname__', type(inner).__name__)}"
