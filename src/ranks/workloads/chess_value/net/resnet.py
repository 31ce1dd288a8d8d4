"""A residual net over planes seen from the side to move.

Group norm replaces batch norm: a position's result must not depend on the other positions of its batch.
"""

from __future__ import annotations

from torch import Tensor, nn

from ranks.nets.channels_last import FirstConv2d
from ranks.nets.group_norm import GroupNorm

GROUPS = 8
VALUE_CHANNELS = 8


class ResidualBlock(nn.Module):
    """Two convolutions with norms, and a shortcut (He et al. 2016, arXiv 1603.05027)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = GroupNorm(GROUPS, channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = GroupNorm(GROUPS, channels)

    def forward(self, maps: Tensor) -> Tensor:
        """[B, C, 8, 8] -> the same shape."""
        hidden = self.norm1(self.conv1(maps), "relu")
        return self.norm2(self.conv2(hidden), "relu", add=maps)


class ResnetValue(nn.Module):
    """Logits of the win probability of the side to move."""

    def __init__(self, planes: int, blocks: int, channels: int, hidden: int) -> None:
        super().__init__()
        self.planes, self.blocks, self.channels, self.hidden = planes, blocks, channels, hidden
        self.stem = FirstConv2d(planes, channels, 3, padding=1)
        self.tower = nn.Sequential(*(ResidualBlock(channels) for _ in range(blocks)))
        self.squeeze = nn.Conv2d(channels, VALUE_CHANNELS, 1)
        self.fc1 = nn.Linear(VALUE_CHANNELS * 64, hidden)
        self.fc_out = nn.Linear(hidden, 1)

    def forward(self, planes_BPHW: Tensor) -> Tensor:
        """[B] logits. planes: [B, P, 8, 8]."""
        maps = self.tower(self.stem(planes_BPHW).relu())
        return self.fc_out(self.fc1(self.squeeze(maps).relu().flatten(1)).relu())[:, 0]
