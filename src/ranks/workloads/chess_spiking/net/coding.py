"""Rate coding: planes become spike trains by counter-based random numbers.

Legend: T time steps, B positions, P planes, 8 ranks, 8 files.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ranks.engine.sharding import rng

LOW, HIGH = 0.1, 0.9
"""The chance of a spike in one step where a plane is 0, and where it is 1: those of chess-snn-rl."""


def rate_code(planes_BP88: Tensor, keys_B: Tensor, seed: int, steps: int) -> Tensor:
    """Spikes, 0 or 1: [T, B, P, 8, 8] in the type of the planes, which lie between 0 and 1.

    The random numbers of a position are a hash of (seed, time step, `keys_B`: int64). With the
    Zobrist key as key, a position always has the same spikes: in any batch, on any rank and device."""
    chance_BN = (LOW + (HIGH - LOW) * planes_BP88.to(torch.float64)).flatten(1)
    trains = [
        rng.uniform(rng.key(seed, "rate-coding", step), keys_B, chance_BN.shape[1]) < chance_BN for step in range(steps)
    ]
    return torch.stack(trains).to(planes_BP88.dtype).unflatten(2, planes_BP88.shape[1:])
