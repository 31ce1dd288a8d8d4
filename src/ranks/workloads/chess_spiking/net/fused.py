"""Lets a net use fused kernels where they can run."""

from __future__ import annotations

import functools

import torch
from torch import nn

from ranks.engine.distributed.world import World
from ranks.nets.channels_last import use_channels_last
from ranks.nets.triton_kernels import load_kernels
from ranks.workloads.chess_spiking.net.lif import LIF, Scan

KERNELS = "ranks.workloads.chess_spiking.net.fused_lif"


def use_fused_kernels(net: nn.Module, world: World) -> bool:
    """Make the layers of a net use Triton kernels and their layout, if the net runs on CUDA and Triton runs there.
    Returns whether its neurons do; if not, they use plain torch."""
    use_channels_last(net, world)
    scan = _fused_scan_on(world.device)
    for layer in net.modules():
        if isinstance(layer, LIF) and scan is not None:
            layer.scan = scan
    return scan is not None


@functools.cache
def _fused_scan_on(device: torch.device) -> Scan | None:
    """Tried once for each device of this process."""
    few = (torch.zeros(1, 1, device=device), 2.0, 1.0, "hard", True, 2.0)
    kernels = load_kernels(KERNELS, device, lambda module: module.fused_lif_scan(*few))
    return None if kernels is None else kernels.fused_lif_scan
