"""Lets a net use fused kernels where they can run."""

from __future__ import annotations

import torch
from torch import nn

from ranks.engine.distributed.world import World
from ranks.nets.channels_last import use_channels_last
from ranks.nets.triton_kernels import load_kernels
from ranks.workloads.chess_spiking.net.lif import LIF

KERNELS = "ranks.workloads.chess_spiking.net.fused_lif"


def use_fused_kernels(net: nn.Module, world: World) -> bool:
    """Make the layers of a net use Triton kernels and their layout, if the net runs on CUDA and Triton runs there.
    Returns whether its neurons do; if not, they use plain torch."""
    use_channels_last(net, world)
    few = (torch.zeros(1, 1, device=world.device), 2.0, 1.0, "hard", True, 2.0)
    kernels = load_kernels(KERNELS, world.device, lambda module: module.fused_lif_scan(*few))
    if kernels is None:
        return False
    for layer in net.modules():
        if isinstance(layer, LIF):
            layer.scan = kernels.fused_lif_scan
    return True
