"""Lets a net use fused kernels where they can run."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn

from ranks.engine.distributed.world import World
from ranks.nets.channels_last import use_channels_last
from ranks.nets.triton_kernels import load_kernels
from ranks.workloads.chess_spiking.net.lif import LIF, Scan

KERNELS = "ranks.workloads.chess_spiking.net.fused_lif"


def use_fused_kernels(net: nn.Module, world: World) -> bool:
    """Make the layers of a net use Triton kernels and their layout, if the net runs on CUDA and Triton runs there.
    Returns whether its neurons do; if not, they use plain torch.

    With --exact or --deterministic they never do: the kernel's gradients differ from plain torch in the last bits, and
    another rank, or the next machine of the run, may have no Triton."""
    use_channels_last(net, world)
    scan = None if world.exact or world.config.deterministic else _fused_scan_on(world.device)
    for layer in net.modules():
        if isinstance(layer, LIF) and scan is not None:
            layer.scan = scan
    return scan is not None


@functools.cache
def _fused_scan_on(device: torch.device) -> Scan | None:
    """Tried forwards and backwards, once for each device of this process."""
    current_TB = torch.zeros(1, 1, device=device, requires_grad=True)

    def attempt(module: Any) -> None:
        module.fused_lif_scan(current_TB, 2.0, 1.0, "hard", True, 2.0).sum().backward()

    kernels = load_kernels(KERNELS, device, attempt)
    return None if kernels is None else kernels.fused_lif_scan
