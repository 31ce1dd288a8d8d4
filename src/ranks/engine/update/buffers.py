"""Buffers that a forward pass changes, for example BatchNorm's running statistics.

They are not gradients, so nothing adds them up. `--exact` refuses them. Fast mode averages them
after every update over the ranks that had items. A skipped update leaves them unchanged.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ranks.engine.distributed.world import World
from ranks.errors import UserError


class Buffers:
    """`moving`: whether a forward pass of any rank changed a buffer; agreed at the first update."""

    def __init__(self, model: nn.Module, world: World) -> None:
        self.model, self.world, self.moving = model, world, False
        self._before: list[Tensor] = []

    def versions(self) -> list[tuple[int, int]]:
        """Changes when a buffer is written to or replaced."""
        return [(id(b), b._version) for b in self.model.buffers()]  # pyright: ignore[reportPrivateUsage]

    def copies(self) -> list[Tensor]:
        return [b.clone() for b in self.model.buffers()]

    def restore(self, copies: list[Tensor]) -> None:
        for buffer, before in zip(self.model.buffers(), copies, strict=True):
            buffer.copy_(before)

    def begin(self, first: bool) -> None:
        """Before the passes of an update. `first`: it is not yet known whether they change
        buffers."""
        self._before = self.copies() if first or self.moving else []

    def rewind(self) -> None:
        """Undo what the newest passes changed: the passes will be repeated."""
        if self._before:
            self.restore(self._before)

    def changed(self) -> None:
        """A forward pass has changed a buffer. Raises UserError under --exact."""
        if self.world.exact:
            raise UserError(
                "--exact", "the model's forward pass changes its buffers (BatchNorm does)", "use GroupNorm or LayerNorm"
            )
        if not self.moving:
            self.moving = True
            text = "the forward pass changes buffers (BatchNorm does): they are averaged over ranks after every update"
            self.world.session.warn(text)

    def average(self, had_items: bool, skip: Tensor) -> None:
        """After an update, on every rank: average over the ranks with items. Where `skip` is 1,
        restore the buffers."""
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
