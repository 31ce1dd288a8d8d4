"""One rank's passes outside an update: to time them, or to find what was not finite. They leave no
trace.

Model, buffers and gradients are afterwards what they were, and torch's generators are seeded before
every pass.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ranks.engine.distributed.device_errors import is_out_of_memory
from ranks.engine.update.evaluate import eval_mode
from ranks.engine.update.gradients import FlatGradients
from ranks.engine.update.loss import Loss
from ranks.engine.update.passes import Passes
from ranks.engine.update.step import PendingUpdate
from ranks.engine.update.vote import PassTotals

MEAN_TOLERANCE = 1e-4
SHOWN_ITEMS = 6


@dataclass(frozen=True)
class DryRunResult:
    """`loss`: the first that is not finite, else the last one. `items`: the first ids of that
    micro-batch. `tensor`: the first parameter whose gradient is not finite. `fits`: the device's
    memory sufficed."""

    seconds: float = 0.0
    loss: float = 0.0
    items: tuple[int, ...] = ()
    tensor: str | None = None
    fits: bool = True

    @property
    def loss_finite(self) -> bool:
        return math.isfinite(self.loss)

    @property
    def finite(self) -> bool:
        return self.loss_finite and self.tensor is None

    @property
    def problem(self) -> str:
        """What was not finite, in words: the loss first, since its gradient follows it."""
        if self.loss_finite:
            return f"the gradient of {self.tensor} is not finite"
        word = "NaN" if math.isnan(self.loss) else "infinite"
        more = ", ..." if len(self.items) > SHOWN_ITEMS else ""
        return f"the loss is {word} (in the micro-batch of items {', '.join(map(str, self.items[:SHOWN_ITEMS]))}{more})"


class DryRun:
    """Runs the passes of an update without the update."""

    def __init__(self, passes: Passes, gradients: FlatGradients) -> None:
        self.passes, self.gradients = passes, gradients

    def run(self, update: PendingUpdate) -> DryRunResult:
        """All passes of this rank."""
        gradients, buffers = self.gradients.flat.clone(), self.passes.buffers.copies()
        self.gradients.zero()
        update.too_large = None
        start, loss, items = time.perf_counter(), 0.0, ()
        try:
            for piece in self.passes.micro_batches(update):
                totals = PassTotals()
                self.passes.run(update, piece, totals)
                if totals.sums and math.isfinite(loss):
                    loss, items = float(totals.sums[0]), tuple(piece.ids[: SHOWN_ITEMS + 1].tolist())
            tensor = self.gradients.non_finite()
            return DryRunResult(time.perf_counter() - start, loss, items, tensor)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return DryRunResult(fits=False)
        finally:
            self.gradients.flat.copy_(gradients)
            self.passes.buffers.restore(buffers)

    def loss_is_a_mean(self, update: PendingUpdate) -> bool:
        """Whether the loss of this rank's first micro-batch is clearly a mean where a sum is
        wanted.

        The sum over a micro-batch is the sum over its first half plus that over its second half. A
        mean is half of that. Everything in between (a loss that compares items with each other) is
        not reported. The model is in evaluation mode, so that dropout draws nothing.
        """
        piece = next((p for p in self.passes.micro_batches(update) if len(p.ids) > 1), None)
        if piece is None:
            return False
        half = len(piece.ids) // 2
        parts = piece.ids[: 2 * half], piece.ids[:half], piece.ids[half : 2 * half]
        model, world = self.passes.model, self.passes.world
        buffers = self.passes.buffers.copies()
        try:
            with eval_mode(model, world):
                whole, first, second = (self._loss(update, model, ids) for ids in parts)
        finally:
            self.passes.buffers.restore(buffers)
        both = float(first.sum) + float(second.sum)
        per_item = whole.count == first.count + second.count == 2 * first.count
        return per_item and both != 0 and abs(float(whole.sum) - both / 2) <= MEAN_TOLERANCE * abs(both)

    def _loss(self, update: PendingUpdate, model: nn.Module, ids: torch.Tensor) -> Loss:
        loss: Any = update.loss_fn(model, update.batch.gather(ids))
        return loss
