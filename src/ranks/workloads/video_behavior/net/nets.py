"""The network that the settings name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ranks.workloads.video_behavior.config import Config
from ranks.workloads.video_behavior.net.mouse3d import Mouse3DNet
from ranks.workloads.video_behavior.net.r2plus1d import R2Plus1DNet
from ranks.workloads.video_behavior.net.x3d import X3DNet

VideoNet: TypeAlias = R2Plus1DNet | X3DNet | Mouse3DNet


def make_net(cfg: Config, classes: Sequence[str]) -> VideoNet:
    """An untrained network with a logit for each class."""
    net, clip, multi = cfg.net, [cfg.clips.frames, cfg.clips.stride, cfg.clips.size], cfg.labels == "multi"
    if net.name == "mouse3d":
        return Mouse3DNet(classes, multi, clip, net.norm)
    kind = R2Plus1DNet if net.name == "r2plus1d-s" else X3DNet
    return kind(classes, multi, clip, net.width, net.blocks_of_stages, net.stem_stride)
