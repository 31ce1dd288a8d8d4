"""A workload whose passes sleep as long as they should take, and whose gradients have the size that they should have.

Everything else is real: the engine's learner, its buckets, gloo, the network. `ranks train ./sleeper.py --rank-ms ...`
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ranks import Learner, Loss, OptimConfig, Run, Summary, World, free, stream
from ranks.engine.update.gradients import FlatGradients

NEVER = 1_000_000
WEIGHT_BYTES = 4


@dataclass(frozen=True)
class Config:
    """One job."""

    iterations: int = free(20)
    eval_every: int = free(NEVER)
    global_batch: int = 64
    layers: int = 8
    megabytes: float = 4.0
    """Of all gradients."""
    front_heavy: float = 1.0
    """How much larger the first layer is than the last one: above 1, the large gradients come last."""
    forward_ms: float = 1.0
    """Of one item, all layers together."""
    backward_ms: float = 2.0
    fixed_ms: float = 0.0
    """Of each pass, forward and backward, whatever its items."""
    loading_ms: float = 0.0
    """Of one item."""
    jitter: float = 0.0
    """Standard deviation of each sleep, as a share."""
    slow_last: float = 1.0
    """By how much longer the last of several ranks sleeps: a slower card."""
    bucket_megabytes: float = 25.0
    """Smaller buckets than the engine's, so that jobs on slow links overlap too."""
    optim: OptimConfig = OptimConfig(lr=1e-6, clip_norm=None, schedule="constant", warmup_updates=0)


class Sleep(torch.autograd.Function):
    """Sleeps in both passes. The gradient of the weight is a constant."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, forward_s: float, backward_s: float, sleeper: Sleeper) -> Tensor:
        ctx.weight, ctx.backward_s, ctx.sleeper = weight, backward_s, sleeper
        sleeper.sleep(forward_s)
        return x + weight[0]

    @staticmethod
    def backward(ctx, grad: Tensor):
        ctx.sleeper.sleep(ctx.backward_s)
        return grad, torch.full_like(ctx.weight, 1e-6), None, None, None


class Sleeper:
    """Sleeps with jitter, another one on each rank."""

    def __init__(self, jitter: float) -> None:
        self.jitter, self.random, self.slowness = jitter, random.Random(os.getpid()), 1.0

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, self.slowness * seconds * (1 + self.jitter * self.random.gauss(0, 1))))


class Net(nn.Module):
    """`layers` weights that add up to `megabytes`."""

    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.cfg = cfg
        sizes = [cfg.front_heavy ** (-i / max(1, cfg.layers - 1)) for i in range(cfg.layers)]
        total = cfg.megabytes * 1e6 / WEIGHT_BYTES / sum(sizes)
        self.weights = nn.ParameterList([nn.Parameter(torch.zeros(max(16, int(size * total)))) for size in sizes])
        self.sleeper = Sleeper(cfg.jitter)

    def forward(self, x_B: Tensor) -> Tensor:
        cfg, share = self.cfg, 1 / (1000 * self.cfg.layers)
        forward_s, backward_s = ((cfg.fixed_ms + ms * len(x_B)) * share for ms in (cfg.forward_ms, cfg.backward_ms))
        for weight in self.weights:
            x_B = Sleep.apply(x_B, weight, forward_s, backward_s, self.sleeper)
        return x_B


class Items:
    """Items that take time to load."""

    cost = None

    def __init__(self, cfg: Config) -> None:
        self.cfg, self.sleeper = cfg, Sleeper(cfg.jitter)

    def __len__(self) -> int:
        return self.cfg.global_batch

    def gather(self, ids: Tensor) -> Tensor:
        self.sleeper.sleep(self.cfg.loading_ms * len(ids) / 1000)
        return torch.ones(len(ids), requires_grad=True)


def build(cfg: Config) -> nn.Module:
    return Net(cfg)


def loss(model: nn.Module, x_B: Tensor) -> Loss:
    y_B = model(x_B)
    return Loss(y_B.sum(), len(y_B))


def train(cfg: Config, world: World) -> Summary:
    FlatGradients.__init__.__defaults__ = (int(cfg.bucket_megabytes * 1e6),)
    data, net = Items(cfg), Net(cfg)
    if world.size > 1 and world.rank == world.size - 1:
        data.sleeper.slowness = net.sleeper.slowness = cfg.slow_last
    items = stream(data, cfg.global_batch, world)
    learner = Learner(net, cfg.optim, world, global_batch=cfg.global_batch, updates=cfg.iterations)
    with Run.open(cfg, world, keep={"learner": learner}) as run:
        for iteration in run.iterations(cfg.iterations):
            run.log(learner.step(loss, items.at(iteration)))
    return run.finish()


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    return {}
