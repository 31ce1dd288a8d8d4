"""A toy workload: name which of four gratings a noisy image shows. Supervised, with dropout."""

# B images, H = W = 8, C classes

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ranks import Learner, Loss, OptimConfig, Run, Summary, World, eval_mode, evaluate_by_shard, free, rng, stream


@dataclass(frozen=True)
class Config:
    iterations: int = free(40)
    eval_every: int = free(10)
    global_batch: int = 32
    num_images: int = 200
    width: int = 16
    dropout: float = 0.0
    optim: OptimConfig = OptimConfig(lr=3e-3, warmup_updates=5)


@dataclass(frozen=True)
class ImageBatch:
    image_BHW: Tensor
    label_B: Tensor


class Gratings:
    """Images 8x8: one of four directions, a random phase, noise; image i is a pure function of
    (seed, purpose, i)."""

    cost = None

    def __init__(self, num_images: int, seed: int, purpose: str, device: torch.device) -> None:
        ids = torch.arange(num_images)
        key = rng.key(seed, purpose, 0)
        self.label_N = rng.integers(key, ids, 1, 4)[:, 0].to(device)
        phase_N11 = rng.uniform(key + 1, ids, 1)[:, :, None]
        angle_N11 = self.label_N.cpu()[:, None, None] * torch.pi / 4
        y_HW, x_HW = torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")
        wave_NHW = torch.sin(x_HW * torch.cos(angle_N11) + y_HW * torch.sin(angle_N11) + 6.28 * phase_N11)
        noise_NHW = rng.normal(key + 2, ids, 64).reshape(-1, 8, 8)
        self.image_NHW = (wave_NHW + noise_NHW).to(torch.get_default_dtype()).to(device)
        self.sha256 = hashlib.sha256(self.image_NHW.cpu().numpy().tobytes()).hexdigest()

    def __len__(self) -> int:
        return len(self.label_N)

    def gather(self, ids: Tensor) -> ImageBatch:
        ids = ids.to(self.image_NHW.device, non_blocking=True)
        return ImageBatch(self.image_NHW[ids], self.label_N[ids])


class Net(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.width, self.dropout = width, dropout
        self.conv = nn.Conv2d(1, width, 3)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 4)
        self.unused = nn.Linear(3, 3)

    def forward(self, image_BHW: Tensor) -> Tensor:
        h = F.relu(self.conv(image_BHW[:, None])).mean((2, 3))
        return self.out(F.dropout(F.relu(self.hidden(h)), self.dropout, self.training))


def build(cfg: Config) -> nn.Module:
    return Net(cfg.width, cfg.dropout)


def image_loss(model: nn.Module, batch: ImageBatch) -> Loss:
    logits_BC = model(batch.image_BHW)
    loss_B = F.cross_entropy(logits_BC, batch.label_B, reduction="none")
    return Loss(loss_B.sum(), len(loss_B), accuracy=(logits_BC.argmax(1) == batch.label_B).to(loss_B.dtype))


def train(cfg: Config, world: World) -> Summary:
    data = Gratings(cfg.num_images, world.seed, "train", world.device)
    images = stream(data, cfg.global_batch, world)
    learner = Learner(build(cfg), cfg.optim, world, global_batch=cfg.global_batch, updates=cfg.iterations)
    with Run.open(cfg, world, keep=dict(learner=learner), data=data.sha256) as run:
        for iteration in run.iterations(cfg.iterations):
            run.log(learner.step(image_loss, images.at(iteration)))
            if run.every(cfg.eval_every):
                found = evaluate(learner.model, cfg, world)
                run.log(found, prefix="val")
                run.save(score=found["loss"])
    return run.finish(export=learner.model)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    data = Gratings(100, world.seed, "val", world.device)
    with eval_mode(model):
        return evaluate_by_shard(world, len(data), lambda ids: image_loss(model, data.gather(ids)))
