"""What the networks share: grey values and motion of a clip, the first convolution, group norm, the classifier.

Legend: B clips, T frames, H height, W width, C channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ranks.nets.group_norm import GroupNorm

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
    motion = torch.add(-MOTION_GAIN * grey.mean(1, keepdim=True), grey, alpha=MOTION_GAIN)  # one kernel
    return torch.stack([grey, motion], 1)


class ClipNorm(GroupNorm):
    """Group norm with 8 channels in a group."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels // CHANNELS_PER_GROUP if channels % CHANNELS_PER_GROUP == 0 else 1, channels)


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


class StemConv(VideoConv3d):
    """A convolution of few channels, whose kernel is 2s - 1 wide for a stride of s in space.

    `space_to_depth`: s x s neighbouring pixels become channels of one, and the kernel is two of those wide. The result
    is the same. cuDNN has a slow kernel for two channels, and a fast one for eight or more.
    """

    space_to_depth = False

    def forward(self, input: Tensor) -> Tensor:
        (frames, *strides), (padding, _, _), _ = self.numbers
        if not self.space_to_depth or min(strides) == 1:
            return super().forward(input)
        if torch.is_autocast_enabled(input.device.type):  # what is copied next is smaller then
            input = input.to(torch.get_autocast_dtype(input.device.type))
        weight = space_to_depth(F.pad(self.weight, (0, 1, 0, 1)), strides)
        return F.conv3d(
            space_to_depth(_with_edges(input, strides), strides), weight, None, (frames, 1, 1), (padding, 0, 0)
        )


def space_to_depth(x_BCTHW: Tensor, strides: Sequence[int]) -> Tensor:
    """[B, C * s * r, T, H / s, W / r], in channels_last_3d: the pixels of each s x r rectangle as channels of one."""
    rows, columns = strides
    split = x_BCTHW.unflatten(4, (-1, columns)).unflatten(3, (-1, rows)).permute(0, 2, 3, 5, 1, 4, 6)
    return split.flatten(4).permute(0, 4, 1, 2, 3)


def _with_edges(x_BCTHW: Tensor, strides: Sequence[int]) -> Tensor:
    """Clips with the zeros around them that the stem's convolution sees, a whole number of strides wide."""
    (height, width), (rows, columns) = x_BCTHW.shape[3:], strides
    below, right = (-size % step + 1 for size, step in ((height, rows), (width, columns)))
    return F.pad(x_BCTHW, (columns - 1, right, rows - 1, below))


class VideoStem(nn.Module):
    """The first convolution, in space and time together: with two channels, a factored one saves nothing."""

    def __init__(self, width: int, stride: Size) -> None:
        super().__init__()
        space = [2 * step - 1 if step > 1 else 3 for step in stride[1:]]
        kernel = (STEM_FRAMES, space[0], space[1])
        padding = (kernel[0] // 2, kernel[1] // 2, kernel[2] // 2)
        self.conv = StemConv(2, width, kernel, stride, padding)
        self.norm = ClipNorm(width)

    def forward(self, x_B2THW: Tensor) -> Tensor:
        return self.norm(self.conv(x_B2THW), "relu")


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
    """The stride in time, height and width of the first block of each stage. Time is halved in two stages. Output
    frame t is centred at input frame 2t, so the middle output is the centre of a clip of 9, 17, 25, ... frames."""
    return [(2 if stage in (1, 2) else 1, 2, 2) for stage in range(stages)]
