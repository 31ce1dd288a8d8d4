"""The net of chess-snn-rl (github.com/andrewhamara/chess-snn-rl), rebuilt for comparison.

Legend: T time steps, B positions, P input planes, C channels, F features, A = 4672 move indices,
3 = win, draw, loss.

    spike train -> (conv 3x3, norm, fire) for 64, 128 and 256 channels -> mean over the 64 squares
    policy:  linear to 1024, fire -> mean over T -> linear to 4672
    value:   linear to 128, fire -> mean over T -> linear

Layers, sizes, neurons (tau 2, hard reset, arctangent surrogate), T = 16 and the initialisation are
the origin's. Two things differ. The norm is group norm, or none: the origin's batch norm makes a
position's result depend on the other positions of its batch, and exact mode rejects it. The value
is win, draw and loss; the origin has one number through tanh.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from ranks.nets.channels_last import FirstConv2d
from ranks.workloads.chess_spiking.net.layers import NeuronNet, each_step, group_norm


class OriginNet(NeuronNet):
    """The origin's net; the head of this file shows its layers. `groups` = 0: no norm."""

    def __init__(
        self,
        planes: int,
        channels: Sequence[int],
        groups: int,
        policy_hidden: int,
        value_hidden: int,
        *,
        neuron: str,
        steps: int,
        tau: float,
        threshold: float,
        reset: str,
        detach_reset: bool,
        alpha: float,
    ) -> None:
        super().__init__(neuron, steps, tau, threshold, reset, detach_reset, alpha)
        self.planes, self.channels, self.groups = planes, tuple(channels), groups
        self.policy_hidden, self.value_hidden = policy_hidden, value_hidden
        fire = self.new_neurons

        first = FirstConv2d(planes, self.channels[0], 3, padding=1, bias=False)
        others = (nn.Conv2d(c_in, c_out, 3, padding=1, bias=False) for c_in, c_out in pairwise(self.channels))
        self.convs = nn.ModuleList([first, *others])
        self.norms = nn.ModuleList(group_norm(groups, c, 1.0) if groups else nn.Identity() for c in self.channels)
        self.fires = nn.ModuleList(fire() for _ in self.channels)
        self.policy_linear = nn.Linear(self.channels[-1], policy_hidden, bias=False)
        self.policy_fire, self.policy_out = fire(), nn.Linear(policy_hidden, 4672)
        self.value_linear = nn.Linear(self.channels[-1], value_hidden, bias=False)
        self.value_fire, self.value_out = fire(), nn.Linear(value_hidden, 3)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the move indices [B, 4672] and of win, draw and loss for the side to move [B, 3].

        planes: spike trains [T, B, P, 8, 8] (rate coding), or [B, P, 8, 8] (direct coding)."""
        if planes.ndim == 5:
            current_TBC88 = each_step(self.norms[0], each_step(self.convs[0], planes))
        else:  # the same in each step, so it is computed once
            current_TBC88 = self.norms[0](self.convs[0](planes))[None].expand(self.steps, -1, -1, -1, -1)
        x_TBC88 = self.fires[0](current_TBC88)
        for conv, norm, fire in zip(self.convs[1:], self.norms[1:], self.fires[1:], strict=True):
            x_TBC88 = fire(each_step(norm, each_step(conv, x_TBC88)))
        mean_TBF = x_TBC88.mean((-2, -1))
        policy_BF = self.policy_fire(each_step(self.policy_linear, mean_TBF)).mean(0)
        value_BF = self.value_fire(each_step(self.value_linear, mean_TBF)).mean(0)
        return self.policy_out(policy_BF), self.value_out(value_BF)
