"""A rank's own passes outside any update: to time them, or to find what was not finite. They leave no trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from ranks.engine.sharding.batch import MicroBatch
from ranks.engine.update.buffers import Buffers
from ranks.engine.update.gradients import FlatGradients
from ranks.engine.update.step import Job
from ranks.engine.update.vote import Found


@dataclass(frozen=True)
class Outcome:
    """`tensor`: the first whose gradient is not finite. `fits`: the device's memory sufficed."""

    seconds: float = 0.0
    loss_finite: bool = True
    tensor: str | None = None
    fits: bool = True


class Alone:
    """`split`: a job's micro-batches; `run`: one forward and backward pass."""

    def __init__(
        self,
        gradients: FlatGradients,
        buffers: Buffers,
        split: Callable[[Job], Iterable[MicroBatch]],
        run: Callable[[Job, MicroBatch, Found], None],
    ) -> None:
        self.gradients, self.buffers, self.split, self.run = gradients, buffers, split, run

    def passes(self, job: Job) -> Outcome:
        """All passes of this rank, with the model, its buffers and the gradients as they were afterwards."""
        kept, buffers = self.gradients.flat.clone(), self.buffers.copies()
        self.gradients.zero()
        start, loss_finite = time.perf_counter(), True
        try:
            for piece in self.split(job):
                found = Found()
                self.run(job, piece, found)
                loss_finite = loss_finite and (not found.sums or bool(torch.isfinite(found.sums[0])))
            tensor = self.gradients.non_finite()
            return Outcome(time.perf_counter() - start, loss_finite, tensor)
        except torch.OutOfMemoryError:
            job.out_of_memory = True
            return Outcome(fits=False)
        finally:
            self.gradients.flat.copy_(kept)
            self.buffers.restore(buffers)
