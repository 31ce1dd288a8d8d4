"""The faster memory layout of a network's activations, measured at the start of a training.

Convolutions in channels_last_3d are faster on some devices and slower on others. PyTorch's group norm copies there, so
on CUDA a kernel takes its place (ranks/nets/fused_norm.py), where Triton is installed. The layout changes the rounding
of a result, so with --exact or --deterministic it is always contiguous: a resume measures again, and may find another.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import torch
from torch import Tensor

from ranks.engine.distributed.precision import autocast
from ranks.engine.distributed.world import World
from ranks.nets.channels_last import fuse_norms, fused_norm_for
from ranks.workloads.video_behavior.config import ClipConfig
from ranks.workloads.video_behavior.net.layers import StemConv, VideoConv3d
from ranks.workloads.video_behavior.net.nets import VideoNet

REPEATS = 3
MAX_CLIPS = 16


def choose_layout(net: VideoNet, clips: ClipConfig, batch: int, world: World) -> str:
    """Set the faster layout of the network on all ranks; what was measured, as a line. Every rank calls it.

    `batch`: clips of one pass; at most 16 are measured.
    """
    if world.exact or world.config.deterministic:
        return "activations are contiguous: with --exact or --deterministic no layout is measured"
    if world.device.type not in ("cpu", "cuda"):
        return "activations are contiguous"
    clips_BTHW = torch.rand(max(1, min(batch, MAX_CLIPS)), clips.frames, clips.size, clips.size, device=world.device)
    seconds: dict[bool, float] = {}
    measured, fused = copy.deepcopy(net).to(world.device), fused_norm_for(world)
    on_cuda = world.device.type == "cuda"
    for channels_last in (False, True):
        set_channels_last(measured, channels_last, fused, space_to_depth=on_cuda)
        seconds[channels_last] = min(_pass_s(measured, clips_BTHW, world) for _ in range(REPEATS))
    faster = bool(world.comm.gather_objects(seconds[True] < seconds[False])[0])
    set_channels_last(net, faster, fused, space_to_depth=on_cuda)
    rates = {
        name: len(clips_BTHW) / seconds[layout] for name, layout in (("contiguous", False), ("channels last", True))
    }
    found = ", ".join(f"{name} {rate:,.0f} clips/s" for name, rate in rates.items())
    return f"activations are {'channels last' if faster else 'contiguous'}: {found} forwards and backwards"


def set_channels_last(
    net: VideoNet, channels_last: bool, fused: Callable[..., Tensor] | None = None, *, space_to_depth: bool = False
) -> None:
    """Set the layout of all convolutions. Where it is channels_last_3d: `fused` is the kernel of group norm, and
    `space_to_depth` says how the stem is computed."""
    for module in net.modules():
        if isinstance(module, VideoConv3d):
            module.channels_last = channels_last
        if isinstance(module, StemConv):
            module.space_to_depth = channels_last and space_to_depth
    fuse_norms(net, fused if channels_last else None)


def _pass_s(net: VideoNet, clips_BTHW: torch.Tensor, world: World) -> float:
    """Seconds of one forward and backward pass."""
    _wait(world)
    start = time.perf_counter()
    with autocast(world.config, world.device):
        total = net(clips_BTHW.to(torch.get_default_dtype())).float().square().sum()
    total.backward()
    _wait(world)
    return time.perf_counter() - start


def _wait(world: World) -> None:
    if world.device.type == "cuda":
        torch.cuda.synchronize(world.device)
