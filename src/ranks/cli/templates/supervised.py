"""A small supervised workload in one file: a network learns to tell three intertwined spirals apart.

    ranks train ./template.py          on all that this machine has; again: it continues; --help: every setting
    ranks evaluate template            then: ranks export template, for weights that plain PyTorch loads

Put your data into `Points` and your network into `Net`. Shapes: N samples, B of them in a batch, D = 2, C classes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ranks import Learner, Loss, OptimConfig, Run, Summary, World, eval_mode, evaluate_by_shard, free, stream


@dataclass(frozen=True)
class Config:
    """Every field is a flag. A field marked `free` may change between the sessions of one run."""

    iterations: int = free(600)
    """The learning rate falls to 0 at the last: to train longer, --optim.schedule-updates keeps the old end."""
    global_batch: int = 256
    """Samples of one update, all GPUs together."""
    hidden: int = 64
    eval_every: int = free(100)
    workers: int = free(0)
    optim: OptimConfig = OptimConfig(lr=1e-2)


class Points:
    """YOUR DATA. `gather` takes sample ids and returns a batch, of any type that your loss understands."""

    cost = None  # or float64[N], where some samples take longer than others

    def __init__(self, num_samples: int, seed: int, device: torch.device) -> None:
        random = torch.Generator().manual_seed(seed)
        self.class_N = (torch.arange(num_samples) % 3).to(device)
        radius_N, noise_N = torch.rand(2, num_samples, generator=random)
        angle_N = 4 * radius_N + 0.5 * noise_N + torch.arange(num_samples) % 3 * 2 * torch.pi / 3
        points_ND = (radius_N * torch.stack([angle_N.cos(), angle_N.sin()])).T.contiguous()
        self.sha256 = hashlib.sha256(points_ND.numpy().tobytes()).hexdigest()  # other data is another run
        self.points_ND = points_ND.to(device, torch.get_default_dtype())

    def __len__(self) -> int:
        return len(self.class_N)

    def gather(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        ids = ids.to(self.class_N.device, non_blocking=True)
        return self.points_ND[ids], self.class_N[ids]


class Net(nn.Module):
    """YOUR NETWORK, in plain PyTorch. It keeps its constructor's arguments under their names: so export rebuilds it."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        first, second = nn.Linear(2, hidden), nn.Linear(hidden, hidden)
        self.layers = nn.Sequential(first, nn.GELU(), second, nn.GELU(), nn.Linear(hidden, 3))

    def forward(self, points_BD: Tensor) -> Tensor:
        return self.layers(points_BD)


def build(cfg: Config) -> nn.Module:
    return Net(cfg.hidden)


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Loss:
    """A sum over samples and their number: the engine divides once, over all GPUs. A metric is one value per sample."""
    points_BD, class_B = batch
    logits_BC = model(points_BD)
    loss_B = cross_entropy(logits_BC, class_B, reduction="none")
    return Loss(loss_B.sum(), len(class_B), accuracy=(logits_BC.argmax(1) == class_B).to(loss_B.dtype))


def train(cfg: Config, world: World) -> Summary:
    data = Points(6000, seed=1, device=world.device)
    batches = stream(data, cfg.global_batch, world, workers=cfg.workers)
    learner = Learner(build(cfg), cfg.optim, world, global_batch=cfg.global_batch, updates=cfg.iterations)
    with Run.open(cfg, world, keep=dict(learner=learner), data=data.sha256) as run:
        for iteration in run.iterations(cfg.iterations):
            run.log(learner.step(loss, batches.at(iteration)))
            if run.every(cfg.eval_every):
                metrics = evaluate(learner.model, cfg, world)
                run.log(metrics, prefix="val")
                run.save(score=metrics["loss"])
    return run.finish(export=learner.model)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    data = Points(1500, seed=2, device=world.device)
    with eval_mode(model):
        return evaluate_by_shard(world, len(data), lambda ids: loss(model, data.gather(ids)))
