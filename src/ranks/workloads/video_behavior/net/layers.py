"""What the networks share: grey values and motion of a clip, the first convolution, group norm, the classifier.

Legend: B clips, T frames, H height, W width, C channels.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Size: TypeAlias = tuple[int, int, int]
CHANNELS_PER_GROUP = 8
STEM_FRAMES = 5
"""Frames that the first convolution sees at once."""
MOTION_GAIN = 4.0
"""Factor of the motion channel, whose values are small."""
LEAST_CONTRAST = 0.01
"""Added to the standard deviation of a clip, so that an empty clip stays finite."""


def grey_and_motion(clips_BTHW: Tensor) -> Tensor:
    """[B, 2, T, H, W]: each clip with mean 0 and standard deviation 1, so that light and camera count less; and how far
    each pixel is from its mean over the clip, which leaves what moves in front of a camera that does not."""
    centred = clips_BTHW - clips_BTHW.mean((1, 2, 3), keepdim=True)
    deviation = centred.square().mean((1, 2, 3), keepdim=True).sqrt()
    grey = centred / (deviation + LEAST_CONTRAST)
    return torch.stack([grey, MOTION_GAIN * (grey - grey.mean(1, keepdim=True))], 1)


def group_norm(channels: int) -> nn.GroupNorm:
    """Group norm with 8 channels in a group (Wu & He 2018, arXiv 1803.08494). Its statistics are those of one clip, so
    a result depends on no other clip of the batch."""
    groups = channels // CHANNELS_PER_GROUP if channels % CHANNELS_PER_GROUP == 0 else 1
    return nn.GroupNorm(groups, channels)


class VideoConv3d(nn.Conv3d):
    """A convolution without bias, in the layout channels_last_3d where `channels_last` is set (layout.py).

    The layout of the weights decides that of the result. The parameters themselves stay contiguous, as optimizer and
    checkpoints expect.
    """

    channels_last = False

    def __init__(
        self, channels: int, out_channels: int, kernel: Size, stride: Size, padding: Size, groups: int = 1
    ) -> None:
        super().__init__(channels, out_channels, kernel, stride, padding, groups=groups, bias=False)
        self.numbers = stride, padding, groups

    def forward(self, input: Tensor) -> Tensor:
        stride, padding, groups = self.numbers
        # `clone`, since `contiguous` returns weights of one channel, which are in both layouts, as they are
        weight = self.weight.clone(memory_format=torch.channels_last_3d) if self.channels_last else self.weight
        return F.conv3d(input, weight, None, stride, padding, 1, groups)


class VideoStem(nn.Module):
    """The first convolution, in space and time together: with two channels, a factored one saves nothing."""

    def __init__(self, width: int, stride: Size) -> None:
        super().__init__()
        space = [2 * step - 1 if step > 1 else 3 for step in stride[1:]]
        kernel = (STEM_FRAMES, space[0], space[1])
        padding = (kernel[0] // 2, kernel[1] // 2, kernel[2] // 2)
        self.conv = VideoConv3d(2, width, kernel, stride, padding)
        self.norm = group_norm(width)

    def forward(self, x_B2THW: Tensor) -> Tensor:
        return torch.relu(self.norm(self.conv(x_B2THW)))


class CentreClassifier(nn.Module):
    """Logits from the mean over the clip and the mean over its centre frame, which is the frame that has the label."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * channels, classes)

    def forward(self, x_BCTHW: Tensor) -> Tensor:
        frames_BCT = x_BCTHW.mean((3, 4))
        centre_BC = frames_BCT[:, :, frames_BCT.shape[2] // 2]
        return self.linear(torch.cat([frames_BCT.mean(2), centre_BC], 1))


def pointwise(channels: int, out_channels: int, stride: Size = (1, 1, 1)) -> VideoConv3d:
    """A 1x1x1 convolution."""
    return VideoConv3d(channels, out_channels, (1, 1, 1), stride, (0, 0, 0))


def stage_strides(stages: int) -> list[Size]:
    """The stride in time, height and width of the first block of each stage. Time is halved in the second and third
    stage: an odd number of frames keeps its centre, since output frame t is centred at input frame 2t."""
    return [(2 if stage in (1, 2) else 1, 2, 2) for stage in range(stages)]
