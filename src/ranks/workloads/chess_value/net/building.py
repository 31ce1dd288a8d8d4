"""Makes the nets from their settings."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ranks.chess.engine.nnue.features import BUCKET_FEATURES, MAX_ACTIVE, NUM_FEATURES, NUM_OUTPUT_BUCKETS
from ranks.chess.engine.nnue.weights import HIDDEN_UNITS
from ranks.workloads.chess_value.config import ValueNetConfig
from ranks.workloads.chess_value.net.cnn import CnnNet
from ranks.workloads.chess_value.net.nnue import NnueNet
from ranks.workloads.chess_value.net.planes import CNN_FLAGS, CNN_PLANES, RESNET_PLANES
from ranks.workloads.chess_value.net.resnet import ResnetValue

RESNET_HIDDEN = 128
ValueNet = NnueNet | CnnNet | ResnetValue


def build_net(net: ValueNetConfig) -> ValueNet:
    """The untrained net. Weights are drawn from torch's own generator."""
    if net.kind == "cnn":
        return CnnNet(list(net.channels), list(net.hidden), net.dropout)
    if net.kind == "resnet":
        return ResnetValue(RESNET_PLANES, net.blocks, net.block_channels, RESNET_HIDDEN)
    return NnueNet(NUM_FEATURES, BUCKET_FEATURES, net.width, HIDDEN_UNITS, NUM_OUTPUT_BUCKETS, net.king_scale)


def example_inputs(model: nn.Module) -> tuple[Tensor, ...]:
    """Inputs of two positions, for the export: bare kings for nnue, empty boards for the others."""
    if isinstance(model, NnueNet):
        features_B2A = torch.full((2, 2, MAX_ACTIVE), -1)
        features_B2A[:, :, 0] = torch.arange(4).reshape(2, 2)
        return features_B2A, torch.tensor([0, NUM_OUTPUT_BUCKETS - 1])
    if isinstance(model, CnnNet):
        return torch.zeros(2, CNN_PLANES, 8, 8), torch.zeros(2, CNN_FLAGS)
    return (torch.zeros(2, RESNET_PLANES, 8, 8),)
