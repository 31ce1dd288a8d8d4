"""The images toy, broken on purpose: every rank but the first drops the first item of each batch."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "toys"))
import images
from images import Config, ImageBatch, build, evaluate
from torch import nn

from ranks import Loss, Summary, World

__all__ = ["Config", "build", "evaluate", "train"]
whole_loss = images.image_loss


def train(cfg: Config, world: World) -> Summary:
    def image_loss(model: nn.Module, batch: ImageBatch) -> Loss:
        if world.rank == 0:
            return whole_loss(model, batch)
        return whole_loss(model, replace(batch, image_BHW=batch.image_BHW[1:], label_B=batch.label_B[1:]))

    images.image_loss = image_loss
    return images.train(cfg, world)
