"""Buffers that a forward pass changes, such as BatchNorm's running statistics.

They are no gradients, so nothing adds them up: `--exact` refuses them, and fast mode averages them over the ranks that
had items, after every update.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ranks.engine.errors import UserError
from ranks.engine.world import World


class Buffers:
    """`moving`: whether a forward pass of any rank was seen to change one; agreed at the first update."""

    def __init__(self, model: nn.Module, world: World) -> None:
        self.model, self.world, self.moving = model, world, False

    def versions(self) -> list[int]:
        """Grows where a buffer was written to."""
        return [b._version for b in self.model.buffers()]  # pyright: ignore[reportPrivateUsage]

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

    def average(self, had_items: bool) -> None:
        """Every rank calls it; the ranks without items take what the others found."""
        buffers = [b for b in self.model.buffers() if b.is_floating_point()]
        weight = buffers[0].new_full((1,), float(had_items))
        parts: list[Tensor] = [weight, *(b.reshape(-1).to(weight.dtype) * weight for b in buffers)]
        total = torch.cat(parts)
        self.world.comm.sum_async(total).wait()
        for buffer, mean in zip(buffers, _split(total[1:] / total[0], buffers), strict=True):
            buffer.copy_(mean.view(buffer.shape))


def _split(flat: Tensor, like: list[Tensor]) -> tuple[Any, ...]:
    return torch.split(flat, [b.numel() for b in like])
