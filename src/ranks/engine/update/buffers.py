"""Buffers that a forward pass changes, such as BatchNorm's running statistics.

They are no gradients, so nothing adds them up: `--exact` refuses them, and fast mode averages them over the ranks that
had items, after every update. A skipped update leaves them as they were.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ranks.engine.distributed.world import World
from ranks.errors import UserError


class Buffers:
    """`moving`: whether a forward pass of any rank was seen to change one; agreed at the first update."""

    def __init__(self, model: nn.Module, world: World) -> None:
        self.model, self.world, self.moving = model, world, False
        self._before: list[Tensor] = []

    def versions(self) -> list[tuple[int, int]]:
        """Differs where a buffer was written to, or replaced."""
        return [(id(b), b._version) for b in self.model.buffers()]  # pyright: ignore[reportPrivateUsage]

    def copies(self) -> list[Tensor]:
        return [b.clone() for b in self.model.buffers()]

    def restore(self, copies: list[Tensor]) -> None:
        for buffer, before in zip(self.model.buffers(), copies, strict=True):
            buffer.copy_(before)

    def begin(self, first: bool) -> None:
        """Before the passes of an update. `first`: it is not yet known whether they move."""
        self._before = self.copies() if first or self.moving else []

    def rewind(self) -> None:
        """Undo what the newest passes changed: they are made again."""
        if self._before:
            self.restore(self._before)

    def changed(self) -> None:
        """A forward pass has changed one. Raises UserError under --exact."""
        if self.world.exact:
            raise UserError(
                "--exact", "the model's forward pass changes its buffers (BatchNorm does)", "use GroupNorm or LayerNorm"
            )
        if not self.moving:
            self.moving = True
            text = "the forward pass changes buffers: they are averaged over ranks after every update"
            self.world.emit({"event": "warning", "text": text})

    def settle(self, had_items: bool, skip: Tensor) -> None:
        """After an update, on every rank: the average over ranks with items; where `skip` is 1, as before it."""
        if not self.moving:
            return
        floating = [b for b in self.model.buffers() if b.is_floating_point()]
        if floating:
            weight = floating[0].new_full((1,), float(had_items))
            total = torch.cat([weight, *(b.reshape(-1).to(weight.dtype) * weight for b in floating)])
            self.world.comm.sum_async(total).wait()
            means = torch.split(total[1:] / total[0], [b.numel() for b in floating])
            for buffer, mean in zip(floating, means, strict=True):
                buffer.copy_(mean.view(buffer.shape))
        for buffer, before in zip(self.model.buffers(), self._before, strict=True):
            buffer.copy_(torch.where(skip != 0, before, buffer))
