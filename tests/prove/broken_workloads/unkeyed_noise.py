"""The images toy, broken on purpose: noise from a generator that each process seeds itself and no checkpoint holds."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "toys"))
import images
import torch
from images import Config, ImageBatch, build, evaluate
from torch import nn

from ranks import Loss, Summary, World

__all__ = ["Config", "build", "evaluate", "train"]
whole_loss = images.image_loss


def train(cfg: Config, world: World) -> Summary:
    generator = torch.Generator()
    generator.seed()

    def image_loss(model: nn.Module, batch: ImageBatch) -> Loss:
        noise_BHW = torch.randn(batch.image_BHW.shape, generator=generator, dtype=batch.image_BHW.dtype)
        return whole_loss(model, replace(batch, image_BHW=batch.image_BHW + 0.1 * noise_BHW))

    images.image_loss = image_loss
    return images.train(cfg, world)
