"""The layout in which a GPU convolves fastest: the channels of a pixel next to each other.

PyTorch's group norm copies to the contiguous layout and back, and under autocast it computes in float32. So on CUDA a
kernel takes its place (fused_norm.py), where Triton runs. Layout and kernel round otherwise than the plain layers, so
with --exact or --deterministic a net keeps those: the next machine of a run may have no Triton.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ranks.engine.distributed.world import World
from ranks.nets.group_norm import GroupNorm
from ranks.nets.triton_kernels import load_kernels

KERNELS = "ranks.nets.fused_norm"


class FirstConv2d(nn.Conv2d):
    """The first convolution of a net. The layout of its input decides that of all activations that follow.

    `channels_last`: it puts its input into that layout."""

    channels_last = False

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.contiguous(memory_format=torch.channels_last) if self.channels_last else input)


def use_channels_last(net: nn.Module, world: World) -> bool:
    """Compute a net that begins with `FirstConv2d` in channels_last, with fused group norms, if the run is on CUDA and
    Triton runs there. Returns whether it is so."""
    fused = None if world.exact or world.config.deterministic else fused_norm_for(world)
    for module in net.modules():
        if isinstance(module, FirstConv2d):
            module.channels_last = fused is not None
    fuse_norms(net, fused)
    return fused is not None


def fused_norm_for(world: World) -> Callable[..., Tensor] | None:
    """The kernel of group norm for activations in channels_last, where it runs."""
    return None if world.config.precision == "fp64" else _fused_norm_on(world.device)


@functools.cache
def _fused_norm_on(device: torch.device) -> Callable[..., Tensor] | None:
    """Tried forwards and backwards, once for each device of this process."""
    ones_8 = torch.ones(8, device=device)

    def attempt(module: Any) -> None:
        x = torch.zeros(2, 8, 4, 4, device=device, requires_grad=True)
        module.fused_norm(x, x, ones_8, ones_8, 1, 1.0, "relu").sum().backward()

    kernels = load_kernels(KERNELS, device, attempt)
    return None if kernels is None else kernels.fused_norm


def fuse_norms(net: nn.Module, fused: Callable[..., Tensor] | None) -> None:
    """Let the kernel compute the group norms of a net that it can compute; None: none of them."""
    for module in net.modules():
        if isinstance(module, GroupNorm):
            width = module.num_channels // module.num_groups
            is_power_of_two = width & (width - 1) == 0  # the kernel has no other groups
            module.fused = fused if is_power_of_two else None
