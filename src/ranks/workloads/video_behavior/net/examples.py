"""Clips to try a network with: for `ranks export --format onnx`, `ranks doctor` and tests."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ranks.engine.sharding import rng

BATCH = 2


def example_inputs(model: nn.Module) -> tuple[Tensor, ...]:
    """float32[2, T, H, W]: clips of random grey values, of the size that the network was made for."""
    frames, _, size = (int(number) for number in model.clip)  # pyright: ignore[reportGeneralTypeIssues, reportArgumentType]
    grey = rng.uniform(rng.key(0, "example clips", 0), torch.arange(BATCH), frames * size**2)
    return (grey.to(torch.float32).view(BATCH, frames, size, size),)
