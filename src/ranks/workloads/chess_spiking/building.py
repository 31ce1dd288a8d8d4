"""Makes the nets from their settings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ranks.workloads.chess_spiking.config import ORIGIN_CHANNELS, Config, NetConfig
from ranks.workloads.chess_spiking.net.origin_net import OriginNet
from ranks.workloads.chess_spiking.net.spiking_net import SpikingNet
from ranks.workloads.chess_spiking.planes import ORIGIN_PLANES, PLANES

ORIGIN_POLICY_HIDDEN = 1024

Net = SpikingNet | OriginNet


def build(cfg: Config) -> Net:
    """The untrained net."""
    return build_net(cfg.net)


def build_net(net: NetConfig) -> Net:
    """The untrained net. Weights are drawn from torch's own generator."""
    neuron: dict[str, Any] = {
        "neuron": net.neuron,
        "steps": 1 if net.neuron == "relu" else net.steps,
        "tau": net.tau,
        "threshold": net.threshold,
        "reset": net.reset,
        "detach_reset": net.detach_reset,
        "alpha": net.alpha,
    }
    if net.kind == "origin":
        sizes = (ORIGIN_PLANES, ORIGIN_CHANNELS, net.groups, ORIGIN_POLICY_HIDDEN, net.value_hidden)
        return OriginNet(*sizes, **neuron)
    return SpikingNet(PLANES, net.blocks, net.width, net.groups, net.value_channels, net.value_hidden, **neuron)


def example_inputs(model: nn.Module) -> tuple[Tensor]:
    """Two positions without pieces, for the export and for speed measurements."""
    assert isinstance(model, Net)
    return (torch.zeros(2, model.planes, 8, 8),)
