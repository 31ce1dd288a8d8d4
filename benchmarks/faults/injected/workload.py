"""A small workload that trains on the numbers of a file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ranks import Learner, Loss, OptimConfig, Run, Summary, World, free, stream


@dataclass(frozen=True)
class Config:
    iterations: int = free(40)
    global_batch: int = 64
    optim: OptimConfig = OptimConfig(lr=1e-2)


class Numbers:
    """Predict the next number of the file."""

    cost = None

    def __init__(self, device: torch.device) -> None:
        content = Path("numbers.csv").read_bytes()
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.values_N = torch.tensor([float(line) for line in content.split()], device=device)

    def __len__(self) -> int:
        return len(self.values_N) - 1

    def gather(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        return self.values_N[ids][:, None], self.values_N[ids + 1][:, None]


def build(cfg: Config) -> nn.Module:
    return nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 1))


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Loss:
    error_B1 = (model(batch[0]) - batch[1]).square()
    return Loss(error_B1.sum(), len(error_B1))


def train(cfg: Config, world: World) -> Summary:
    data = Numbers(world.device)
    batches = stream(data, cfg.global_batch, world)
    learner = Learner(build(cfg), cfg.optim, world, global_batch=cfg.global_batch, updates=cfg.iterations)
    with Run.open(cfg, world, keep=dict(learner=learner), data=data.sha256) as run:
        for iteration in run.iterations(cfg.iterations):
            run.log(learner.step(loss, batches.at(iteration)))
    return run.finish(export=learner.model)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    return {"loss": 0.0}
