"""Schedules as pure functions, and the optimiser they steer."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn

from ranks.engine.config import OptimConfig


def warmup(update: int, updates: int) -> float:
    """Linear from 1/updates to 1 (Goyal et al. 2017, arXiv 1706.02677)."""
    return 1.0 if updates <= 0 else min(1.0, (update + 1) / updates)


def cosine(progress: float) -> float:
    """Half a cosine from 1 to 0 (Loshchilov & Hutter 2017, arXiv 1608.03983)."""
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, max(0.0, progress))))


def linear(progress: float) -> float:
    """A line from 1 to 0."""
    return 1.0 - min(1.0, max(0.0, progress))


def learning_rate(config: OptimConfig, update: int) -> float:
    """The rate of update `update` (from 0) of a resolved config."""
    rate = config.lr * warmup(update, config.warmup_updates)
    if config.schedule == "constant" or config.schedule_updates is None:
        return rate
    span = max(1, config.schedule_updates - config.warmup_updates)
    progress = (update - config.warmup_updates) / span
    return rate * (cosine(progress) if config.schedule == "cosine" else linear(progress))


def adamw(parameters: Iterable[nn.Parameter], config: OptimConfig) -> torch.optim.AdamW:
    """Fused AdamW, whose `found_inf` skips an update on the device."""
    return torch.optim.AdamW(
        list(parameters), lr=config.lr, betas=config.betas, eps=config.eps, weight_decay=config.weight_decay, fused=True
    )
