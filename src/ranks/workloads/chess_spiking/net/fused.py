"""Lets a net use the fused kernel where it can run."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import torch
from torch import nn

from ranks.workloads.chess_spiking.net.lif import LIF


def use_fused_kernel(net: nn.Module, device: torch.device) -> bool:
    """Make all spiking layers of a net use the Triton kernel, if the net runs on CUDA and Triton is
    installed. Returns whether they do; if not, they use plain torch."""
    if device.type != "cuda" or find_spec("triton") is None:
        return False
    fused_lif = import_module("ranks.workloads.chess_spiking.net.fused_lif")
    for layer in net.modules():
        if isinstance(layer, LIF):
            layer.scan = fused_lif.fused_lif_scan
    return True
