"""Ranges of entries that follow each other, such as the nodes of each graph of a batch.

Nothing here makes the host wait for the device: the caller knows the number of entries. Without it,
`repeat_interleave` reads its result's length from the device (torch, ATen/native/Repeat.h).
"""

from __future__ import annotations

import torch
from torch import Tensor


def range_starts(counts: Tensor) -> Tensor:
    """int64[G + 1]: the first entry of each of G ranges, then the number of entries."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def expand(starts: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """(range, position in the range) of each of `total` entries.

    Range g has starts[g + 1] - starts[g] entries.
    """
    group = torch.repeat_interleave(starts.diff(), output_size=total)
    return group, torch.arange(total, device=starts.device) - starts[group]
