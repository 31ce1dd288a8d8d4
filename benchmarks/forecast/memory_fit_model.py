"""A workload whose memory is set by its flags: for memory_fit.py. Random inputs, several kinds of layers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ranks import Learner, Loss, OptimConfig, Run, Summary, World, free, rng, stream


@dataclass(frozen=True)
class Config:
    kind: Literal["dense", "conv", "attention"] = "dense"
    iterations: int = free(2)
    global_batch: int = 1024
    width: int = 256
    depth: int = 4
    optim: OptimConfig = OptimConfig()


class Inputs:
    """Item i is a pure function of i."""

    cost = None
    sha256 = "made of item ids"

    def __init__(self, shape: tuple[int, ...], count: int, device: torch.device) -> None:
        self.shape, self.count, self.device = shape, count, device

    def __len__(self) -> int:
        return self.count

    def gather(self, ids: Tensor) -> Tensor:
        size = 1
        for length in self.shape:
            size *= length
        return (
            rng.uniform(1, ids, 1).expand(len(ids), size).reshape(len(ids), *self.shape).to(self.device, torch.float32)
        )


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x_BTF: Tensor) -> Tensor:
        q, k, v = self.qkv(x_BTF).chunk(3, -1)
        return x_BTF + self.out(torch.softmax(q @ k.mT / self.width**0.5, -1) @ v)


def shape_of(cfg: Config) -> tuple[int, ...]:
    return {"dense": (cfg.width,), "conv": (cfg.width, 24, 24), "attention": (64, cfg.width)}[cfg.kind]


def build(cfg: Config) -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(cfg.depth):
        if cfg.kind == "dense":
            layers += [nn.Linear(cfg.width, cfg.width), nn.GELU()]
        elif cfg.kind == "conv":
            layers += [nn.Conv2d(cfg.width, cfg.width, 3, padding=1), nn.ReLU()]
        else:
            layers += [Attention(cfg.width)]
    model = nn.Sequential(*layers)
    if note := os.environ.get("MEMORY_FIT_NOTE"):  # what the process holds after `build`
        Path(note).write_text(str(psutil.Process().memory_info().rss))
    return model


def loss(model: nn.Module, x: Tensor) -> Loss:
    return Loss(F.mse_loss(model(x), x, reduction="sum") / x[0].numel(), len(x))


def train(cfg: Config, world: World) -> Summary:
    data = Inputs(shape_of(cfg), 4 * cfg.global_batch, world.device)
    batches = stream(data, cfg.global_batch, world)
    learner = Learner(build(cfg), cfg.optim, world, global_batch=cfg.global_batch, updates=cfg.iterations)
    with Run.open(cfg, world, keep=dict(learner=learner), data=data.sha256) as run:
        for iteration in run.iterations(cfg.iterations):
            run.log(learner.step(loss, batches.at(iteration)))
    return run.finish(export=learner.model)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    return {"loss": 0.0}
