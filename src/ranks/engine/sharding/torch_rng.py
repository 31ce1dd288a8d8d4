"""Torch's own generators, which `nn.Dropout` draws from. They are seeded before each pass, so they
have no state to save."""

from __future__ import annotations

import torch

from ranks.engine.sharding import rng
from ranks.engine.sharding.batch import MicroBatch


class TorchGenerators:
    """The generators of the CPU and of this rank's device. `used`: whether a forward pass was seen
    to draw from one."""

    def __init__(self, device: torch.device) -> None:
        self.used = False
        self._all = [torch.default_generator]
        if device.type == "cuda":
            self._all.append(torch.cuda.default_generators[device.index or 0])

    def seed(self, seed: int, update: int, piece: MicroBatch) -> None:
        """Make the random numbers of the next pass a function of (seed, update, shard, offset in
        the shard)."""
        number = rng.torch_seed(seed, update, piece.shard, piece.offset)
        for generator in self._all:
            generator.manual_seed(number)

    def states(self) -> list[bytes]:
        """Their states, to see whether a pass has drawn; waits for the device."""
        return [generator.get_state().numpy().tobytes() for generator in self._all]
