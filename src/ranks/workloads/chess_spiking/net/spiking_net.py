"""The residual net: planes of a position in, logits of moves and of win, draw and loss out.

Legend: T time steps, B positions, P input planes, C channels, 8 ranks, 8 files, A = 4672 move
indices (moves.py), 3 = win, draw, loss.

    planes -> conv, norm -> current, spikes = fire(current)       (the stem)
    blocks times:  current += norm(conv(fire(norm(conv(spikes))))), spikes = fire(current)
    policy:  mean over T of fire(norm(conv(spikes))) -> 1x1 conv to 73 planes
    value:   mean over T of fire(norm(linear(counts) + linear(fire(norm(conv(spikes)))))) -> linear to 3,
             + linear(pieces)
    counts:  the spikes of each channel on the whole board, of the stem and of the tower
    pieces:  how many pieces of each kind both sides have, 12 numbers

Material is a number of pieces, and a norm removes numbers: it rescales the currents of each position. So
the value has a linear term in the pieces, 36 weights that begin at 0 and that no norm or neuron follows.
Without it a net remembered its first games in place of learning to count. With `value_channels` 0 the
rest of the value only sees the spikes' counts.

The shortcut carries currents and not spikes (Hu et al. 2021, "Advancing Spiking Neural Networks
towards Deep Residual Learning", arXiv 2112.08954), so all layers but the stem get spikes as inputs.
With `neuron="relu"` fire is a ReLU and T = 1: the pre-activation residual net of He et al. 2016
(arXiv 1603.05027), the control with the same layers and weights.

Direct coding (Rathi and Roy 2020, arXiv 2008.03658): the planes are a constant current, so the stem
is computed once for all steps. Rate coding: the input is a spike train, [T, B, P, 8, 8] (coding.py).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ranks.nets.channels_last import FirstConv2d
from ranks.workloads.chess_spiking.net.layers import NeuronNet, each_step, group_norm

SQUARES = 64
PIECES = 12
"""The first planes hold pieces, one kind of one side each."""


class Block(nn.Module):
    """A residual block: current and its spikes in, the next ones out."""

    def __init__(self, width: int, groups: int, gain: float, last_gain: float, fires: list[nn.Module]) -> None:
        super().__init__()
        self.conv_1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm_1 = group_norm(groups, width, gain)
        self.conv_2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm_2 = group_norm(groups, width, last_gain)
        self.inner_fire, self.fire = fires

    def forward(self, current_TBC88: Tensor, spikes_TBC88: Tensor) -> tuple[Tensor, Tensor]:
        hidden_TBC88 = self.inner_fire(each_step(self.norm_1, each_step(self.conv_1, spikes_TBC88)))
        change_TBC88 = each_step(self.conv_2, hidden_TBC88)
        if current_TBC88.stride(0) == 0:  # the same memory in each step, which a sum need not copy
            current_TBC88 = current_TBC88 + each_step(self.norm_2, change_TBC88)
        else:
            current_TBC88 = each_step(self.norm_2, change_TBC88, add=current_TBC88)
        return current_TBC88, self.fire(current_TBC88)


class SpikingNet(NeuronNet):
    """The residual policy-value net; the head of this file shows its layers.

    `gain`: norms begin with the weight threshold * tau, so that a potential begins with the standard
    deviation of the threshold (Zheng et al. 2021, arXiv 2011.05280, with the 1 / tau of our charge).
    The blocks together begin with the variance of the stem."""

    def __init__(
        self,
        planes: int,
        blocks: int,
        width: int,
        groups: int,
        value_channels: int,
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
        self.planes, self.blocks, self.width, self.groups = planes, blocks, width, groups
        self.value_channels, self.value_hidden = value_channels, value_hidden
        gain = threshold * tau if neuron == "lif" else 1.0
        last_gain = gain / math.sqrt(max(blocks, 1))
        fire = self.new_neurons

        self.stem = FirstConv2d(planes, width, 3, padding=1, bias=False)
        self.stem_norm = group_norm(groups, width, gain)
        self.stem_fire = fire()
        self.tower = nn.ModuleList(Block(width, groups, gain, last_gain, [fire(), fire()]) for _ in range(blocks))
        self.policy_conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.policy_norm, self.policy_fire = group_norm(groups, width, gain), fire()
        self.policy_out = nn.Conv2d(width, 73, 1)
        if value_channels:
            self.value_conv = nn.Conv2d(width, value_channels, 1, bias=False)
            self.value_norm, self.value_fire = group_norm(groups, value_channels, gain), fire()
            self.value_linear = nn.Linear(SQUARES * value_channels, value_hidden, bias=False)
        self.pooled_linear = nn.Linear(2 * width, value_hidden, bias=False)
        self.hidden_norm, self.hidden_fire = group_norm(1, value_hidden, gain), fire()
        self.value_out = nn.Linear(value_hidden, 3)
        self.pieces_out = nn.Linear(PIECES, 3, bias=False)
        nn.init.zeros_(self.pieces_out.weight)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the move indices [B, 4672] and of win, draw and loss for the side to move [B, 3].

        planes: [B, P, 8, 8] (direct coding), or spike trains [T, B, P, 8, 8] (rate coding)."""
        if planes.ndim == 5:
            current_TBC88 = each_step(self.stem_norm, each_step(self.stem, planes))
        else:
            current_BC88 = self.stem_norm(self.stem(planes))
            current_TBC88 = current_BC88[None].expand(self.steps, -1, -1, -1, -1)
        spikes_TBC88 = stem_spikes_TBC88 = self.stem_fire(current_TBC88)
        for block in self.tower:
            current_TBC88, spikes_TBC88 = block(current_TBC88, spikes_TBC88)

        policy_TBC88 = self.policy_fire(each_step(self.policy_norm, each_step(self.policy_conv, spikes_TBC88)))
        logits_BA = self.policy_out(policy_TBC88.mean(0)).flatten(1)

        counts_TBC = torch.cat([stem_spikes_TBC88.sum((3, 4)), spikes_TBC88.sum((3, 4))], 2) / math.sqrt(SQUARES)
        hidden_TBH = each_step(self.pooled_linear, counts_TBC)
        if self.value_channels:
            value_TBC88 = self.value_fire(each_step(self.value_norm, each_step(self.value_conv, spikes_TBC88)))
            hidden_TBH = hidden_TBH + each_step(self.value_linear, value_TBC88.flatten(2))
        hidden_BH = self.hidden_fire(each_step(self.hidden_norm, hidden_TBH)).mean(0)
        pieces_BP = (planes.mean(0) if planes.ndim == 5 else planes)[:, :PIECES].sum((2, 3))
        return logits_BA, self.value_out(hidden_BH) + self.pieces_out(pieces_BP)
