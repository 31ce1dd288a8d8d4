"""One update under way: what it was computed from, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ranks.engine.sharding.batch import StepBatch
from ranks.engine.update.loss import Loss
from ranks.engine.update.step_clock import StepClock
from ranks.engine.update.vote import Vote, VoteLayout


class StepStats:
    """What one update found: `stats["loss"]` is a 0-d tensor on the device, asking for it waits for nothing.

    `read()` gives the numbers, and waits until the device has got that far.
    """

    def __init__(self, clock: StepClock, spent: dict[str, float]) -> None:
        self.names: list[str] = []
        self.clock, self.spent = clock, spent
        self._layout: VoteLayout | None = None
        self._device: Tensor | None = None
        self._host: Tensor | None = None
        self._event: torch.cuda.Event | None = None
        self._vote: Vote | None = None

    def post(self, numbers: Tensor, layout: VoteLayout) -> None:
        """`numbers`: the summed tail; copied to pinned memory while the device goes on."""
        self._device, self._layout, self._vote = numbers, layout, None
        if numbers.device.type == "cuda":
            self._host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            self._host.copy_(numbers, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()
        else:
            self._host = numbers

    def __getitem__(self, name: str) -> Tensor:
        assert self._device is not None
        assert self._layout is not None
        if name == "grad_norm":
            return self._device[self._layout.norm]
        index = self.names.index(name)
        return self._device[self._layout.first_sum + index] / self._device[self._layout.first_count + index]

    @property
    def settled(self) -> bool:
        """Whether the vote was read."""
        return self._vote is not None

    def read(self) -> Vote:
        """The numbers, on the host."""
        if self._vote is None:
            assert self._host is not None
            assert self._layout is not None
            if self._event is not None:
                self._event.synchronize()
            self._vote = self._layout.read(self._host.tolist(), self.names)
            for phase, seconds in self.clock.read().items():
                self.spent[phase] += seconds
            self.spent["items"] += self._vote.count
        return self._vote


@dataclass
class Job:
    """One update: the loss function, this rank's batch, its number, and its time."""

    loss_fn: Callable[[Any, Any], Loss]
    batch: StepBatch[Any]
    update: int
    clock: StepClock
    spent: dict[str, float]
    largest_cost: float = 0.0
    out_of_memory: bool = False
    stats: StepStats = field(init=False)

    def __post_init__(self) -> None:
        self.stats = StepStats(self.clock, self.spent)

    @property
    def single_item(self) -> bool:
        """Whether this rank's largest micro-batch was one item already."""
        cost = self.batch.shards.cost
        dearest = 1.0 if cost is None else float(cost.max()) if len(cost) else 0.0
        return 0 < self.largest_cost <= dearest
