"""Learning-rate schedules as pure functions, and AdamW."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ranks.engine.config import OptimConfig


def warmup(update: int, updates: int) -> float:
    """Linear from 1/updates to 1 (Goyal et al. 2017, arXiv 1706.02677)."""
    return 1.0 if updates <= 0 else min(1.0, (update + 1) / updates)


def cosine(progress: float) -> float:
    """Half a cosine wave from 1 to 0 (Loshchilov & Hutter 2017, arXiv 1608.03983)."""
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, max(0.0, progress))))


def linear(progress: float) -> float:
    """A straight line from 1 to 0."""
    return 1.0 - min(1.0, max(0.0, progress))


def learning_rate(config: OptimConfig, update: int) -> float:
    """The rate of update `update` (from 0) of a resolved config."""
    rate = config.lr * warmup(update, config.warmup_updates)
    if config.schedule == "constant" or config.schedule_updates is None:
        return rate
    span = max(1, config.schedule_updates - config.warmup_updates)
    progress = (update - config.warmup_updates) / span
    return rate * (cosine(progress) if config.schedule == "cosine" else linear(progress))


class AdamW:
    """Fused AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101) that can skip an update on the
    device.

    It calls the same kernel as `torch.optim.AdamW(fused=True)`, without that class: importing the
    class takes every rank a second at each start, and its step a tenth of a millisecond.
    """

    def __init__(self, parameters: Sequence[Tensor], config: OptimConfig) -> None:
        self.parameters, self.config = list(parameters), config
        self.exp_avg = [torch.zeros_like(p, requires_grad=False) for p in parameters]
        self.exp_avg_sq = [torch.zeros_like(p, requires_grad=False) for p in parameters]
        self.step = torch.zeros((), dtype=torch.float32, device=self.parameters[0].device)
        """Number of updates; a skipped update does not count."""
        self._one = torch.ones_like(self.step)
        not_decaying = [n for n, p in enumerate(parameters) if p.ndim < 2] if config.decay_only == "matrices" else []
        decaying = [n for n in range(len(parameters)) if n not in set(not_decaying)]
        self._groups = [
            (decay, members, [[of[n] for n in members] for of in (self.parameters, self.exp_avg, self.exp_avg_sq)])
            for decay, members in ((config.weight_decay, decaying), (0.0, not_decaying))
            if members
        ]
        """Of each weight decay: the numbers of its parameters; the parameters and their moments."""

    @torch.no_grad()
    def update(self, gradients: list[Tensor], lr: float, skip: Tensor) -> None:
        """One update. `skip`: 0-d float32 on the device; 1 leaves weights and moments unchanged."""
        self.step.add_(self._one)
        for weight_decay, members, (parameters, exp_avg, exp_avg_sq) in self._groups:
            torch._fused_adamw_(  # pyright: ignore[reportPrivateUsage]
                parameters,
                [gradients[n] for n in members],
                exp_avg,
                exp_avg_sq,
                [],
                [self.step] * len(members),
                lr=lr,
                beta1=self.config.betas[0],
                beta2=self.config.betas[1],
                weight_decay=weight_decay,
                eps=self.config.eps,
                amsgrad=False,
                maximize=False,
                found_inf=skip,
            )
        self.step.sub_(skip)

    def state_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """The moments by parameter name, and the number of updates."""
        return {
            "exp_avg": dict(zip(names, self.exp_avg, strict=True)),
            "exp_avg_sq": dict(zip(names, self.exp_avg_sq, strict=True)),
            "step": self.step,
        }

    def load_state_dict(self, state: Mapping[str, Any], names: Sequence[str]) -> None:
        for kind, own in (("exp_avg", self.exp_avg), ("exp_avg_sq", self.exp_avg_sq)):
            for name, moment in zip(names, own, strict=True):
                moment.copy_(state[kind][name])
        self.step.copy_(state["step"])
