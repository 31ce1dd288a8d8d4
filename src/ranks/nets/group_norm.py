"""Group norm, an optional sum and an activation as one layer, which a kernel can compute at once.

Legend: B samples, C channels, ... dimensions of space and time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Activation: TypeAlias = Literal["none", "relu", "silu"]


class GroupNorm(nn.GroupNorm):
    """Group norm (Wu and He 2018, arXiv 1803.08494), then an optional sum and an activation.

    Unlike batch norm it looks at one sample only, so a result does not depend on the other samples of a batch.
    `fused`: a kernel that computes all of it (channels_last.py). Its result has the type of the input; under autocast
    that is bfloat16, also of a sum, where the plain layers have float32.
    """

    fused: Callable[..., Tensor] | None = None

    def forward(self, input: Tensor, activation: Activation = "none", add: Tensor | None = None) -> Tensor:
        """activation(norm(input) [+ add]): [B, C, ...] to [B, C, ...]."""
        if self.fused is not None and input.ndim > 2 and len(input):  # vectors have no layout
            return self.fused(input, add, self.weight, self.bias, self.num_groups, self.eps, activation)
        x = super().forward(input)
        if add is not None:
            x = x + add
        if activation == "none":
            return x
        return torch.relu(x) if activation == "relu" else F.silu(x)
