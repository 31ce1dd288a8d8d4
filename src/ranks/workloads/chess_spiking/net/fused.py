"""Lets a net use the fused kernel where it can run."""

from __future__ import annotations

import torch
from torch import nn

from ranks.triton_kernels import load_kernels
from ranks.workloads.chess_spiking.net.lif import LIF

KERNELS = "ranks.workloads.chess_spiking.net.fused_lif"


def use_fused_kernel(net: nn.Module, device: torch.device) -> bool:
    """Make all spiking layers of a net use the Triton kernel, if the net runs on CUDA and Triton runs there. Returns
    whether they do; if not, they use plain torch."""
    few = (torch.zeros(1, 1, device=device), 2.0, 1.0, "hard", True, 2.0)
    kernels = load_kernels(KERNELS, device, lambda module: module.fused_lif_scan(*few))
    if kernels is None:
        return False
    for layer in net.modules():
        if isinstance(layer, LIF):
            layer.scan = kernels.fused_lif_scan
    return True
