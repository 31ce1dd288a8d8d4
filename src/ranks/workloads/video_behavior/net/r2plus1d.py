"""r2plus1d-s: residual blocks of a convolution in space and one in time (Tran et al. 2018, arXiv 1711.11248).

It differs from R(2+1)D in width (24 channels in the first stage instead of 64), in group norm instead of batch norm,
and in strided convolutions where others pool. Plain PyTorch: `ranks export` copies this file.

Legend: B clips, T frames, H height, W width, C channels.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

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


class R2Plus1DBlock(nn.Module):
    """x + f(x), where f is a 1x3x3 and a 3x1x1 convolution. The stride in space is that of the first, the stride in
    time that of the second."""

    def __init__(self, channels: int, out_channels: int, stride: Size) -> None:
        super().__init__()
        space, time = (1, stride[1], stride[2]), (stride[0], 1, 1)
        self.space = VideoConv3d(channels, out_channels, (1, 3, 3), space, (0, 1, 1))
        self.space_norm = ClipNorm(out_channels)
        self.time = VideoConv3d(out_channels, out_channels, (3, 1, 1), time, (1, 0, 0))
        self.time_norm = ClipNorm(out_channels)
        nn.init.zeros_(self.time_norm.weight)  # a block begins as the identity
        same = channels == out_channels and max(stride) == 1
        shortcut = pointwise(channels, out_channels, stride)
        self.shortcut = nn.Identity() if same else nn.Sequential(shortcut, ClipNorm(out_channels))

    def forward(self, x_BCTHW: Tensor) -> Tensor:
        hidden = self.space_norm(self.space(x_BCTHW), "relu")
        return self.time_norm(self.time(hidden), "relu", add=self.shortcut(x_BCTHW))


class R2Plus1DNet(nn.Module):
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
                stages.append(R2Plus1DBlock(channels, out, stride if block == 0 else (1, 1, 1)))
                channels = out
        self.stages = nn.Sequential(*stages)
        self.classifier = CentreClassifier(channels, len(classes))

    def forward(self, clips_BTHW: Tensor) -> Tensor:
        x = self.stem(grey_and_motion(clips_BTHW))
        return self.classifier(self.stages(x))
