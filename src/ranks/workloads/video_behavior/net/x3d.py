"""x3d-s: residual blocks with depthwise 3x3x3 convolutions between two pointwise ones (Feichtenhofer 2020, X3D,
arXiv 2004.04730), with group norm, and half the frames in the later stages.

Plain PyTorch: `ranks export` copies this file. Depthwise convolutions are slow on a CPU.

Legend: B clips, T frames, H height, W width, C channels, E expanded channels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ranks.workloads.video_behavior.net.layers import (
    CentreClassifier,
    ClipNorm,
    Size,
    VideoConv3d,
    VideoStem,
    grey_and_motion,
    pointwise,
    stage_strides,
)

EXPANSION = 2.25
"""Channels of the depthwise convolution, relative to those of the stage."""
SQUEEZE = 4
"""Channels of squeeze-and-excitation are so many times fewer (Hu et al. 2018, arXiv 1709.01507)."""


def expanded(channels: int) -> int:
    """24 -> 56: 2.25 times as many channels, rounded up to a multiple of 8."""
    return -(-int(channels * EXPANSION) // 8) * 8


class X3DBlock(nn.Module):
    """x + f(x), where f expands the channels, convolves each in space and time, weighs them, and projects them."""

    def __init__(self, channels: int, out_channels: int, stride: Size) -> None:
        super().__init__()
        inner = expanded(out_channels)
        self.expand = pointwise(channels, inner)
        self.expand_norm = ClipNorm(inner)
        self.depthwise = VideoConv3d(inner, inner, (3, 3, 3), stride, (1, 1, 1), groups=inner)
        self.depthwise_norm = ClipNorm(inner)
        self.squeeze = nn.Linear(inner, max(8, inner // SQUEEZE))
        self.excite = nn.Linear(self.squeeze.out_features, inner)
        self.project = pointwise(inner, out_channels)
        self.project_norm = ClipNorm(out_channels)
        nn.init.zeros_(self.project_norm.weight)  # a block begins as the identity
        same = channels == out_channels and max(stride) == 1
        shortcut = pointwise(channels, out_channels, stride)
        self.shortcut = nn.Identity() if same else nn.Sequential(shortcut, ClipNorm(out_channels))

    def forward(self, x_BCTHW: Tensor) -> Tensor:
        x = self.expand_norm(self.expand(x_BCTHW), "silu")
        x = self.depthwise_norm(self.depthwise(x))
        weight_BE = torch.sigmoid(self.excite(torch.relu(self.squeeze(x.mean((2, 3, 4))))))
        x = F.silu(x * weight_BE[:, :, None, None, None])
        return self.project_norm(self.project(x), "relu", add=self.shortcut(x_BCTHW))


class X3DNet(nn.Module):
    """Logits [B, classes] of the centre frames of clips [B, T, H, W] with grey values from 0 to 1.

    `classes`: their names; `multi`: they may overlap. `clip`: frames, every how many, and pixels of a side; the net
    itself takes others too. `width`: channels of the first stage. `blocks`: of each stage."""

    def __init__(
        self,
        classes: Sequence[str],
        multi: bool,
        clip: Sequence[int],
        width: int,
        blocks: Sequence[int],
        stem_stride: Sequence[int],
    ) -> None:
        super().__init__()
        self.classes, self.multi, self.clip = list(classes), multi, list(clip)
        self.width, self.blocks, self.stem_stride = width, list(blocks), list(stem_stride)
        self.stem = VideoStem(width, (stem_stride[0], stem_stride[1], stem_stride[2]))
        stages: list[nn.Module] = []
        channels = width
        for stage, (count, stride) in enumerate(zip(blocks, stage_strides(len(blocks)), strict=True)):
            for block in range(count):
                out = width * 2**stage
                stages.append(X3DBlock(channels, out, stride if block == 0 else (1, 1, 1)))
                channels = out
        self.stages = nn.Sequential(*stages)
        inner = expanded(channels)
        self.head = nn.Sequential(pointwise(channels, inner), ClipNorm(inner), nn.ReLU())
        self.classifier = CentreClassifier(inner, len(classes))

    def forward(self, clips_BTHW: Tensor) -> Tensor:
        x = self.stem(grey_and_motion(clips_BTHW))
        return self.classifier(self.head(self.stages(x)))
