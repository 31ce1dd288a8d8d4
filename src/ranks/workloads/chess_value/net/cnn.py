"""The origin's net: three convolutions and three linear layers over 13 planes.

Its value is tanh(z) for white. Since tanh(z) = 2 p - 1 with p = 1 / (1 + exp(-2 z)), white's logit is 2 z. Layers have
the origin's names, so its files fit.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

SIDE_PLANE = 12


class CnnNet(nn.Module):
    """Logits of the win probability of the side to move."""

    def __init__(self, channels: list[int], hidden: list[int], dropout: float) -> None:
        """`channels`: of the three convolutions; `hidden`: units of the first two linear layers."""
        super().__init__()
        self.channels, self.hidden, self.dropout = channels, hidden, dropout
        self.conv1 = nn.Conv2d(13, channels[0], 3, padding=1)
        self.conv2 = nn.Conv2d(channels[0], channels[1], 3, padding=1)
        self.conv3 = nn.Conv2d(channels[1], channels[2], 3, padding=1)
        self.fc1 = nn.Linear(channels[2] * 64 + 4, hidden[0])
        self.fc2 = nn.Linear(hidden[0], hidden[1])
        self.fc_out = nn.Linear(hidden[1], 1)

    def forward(self, planes_B13HW: Tensor, castling_B4: Tensor) -> Tensor:
        """[B] logits. planes: [B, 13, 8, 8], castling: [B, 4], see planes.py."""
        maps = planes_B13HW
        for convolution in (self.conv1, self.conv2, self.conv3):
            maps = convolution(maps).relu()
        hidden = self.fc1(torch.cat([maps.flatten(1), castling_B4], 1)).relu()
        hidden = nn.functional.dropout(hidden, self.dropout, self.training)
        z_B = self.fc_out(self.fc2(hidden).relu())[:, 0]
        side_B = 2.0 * planes_B13HW[:, SIDE_PLANE, 0, 0] - 1.0
        return 2.0 * z_B * side_B
