"""Updates of video-behavior from a store on the device: clips/s by batch, memory, bytes and operations of a clip.

Everything counts: clips are cut out of the store and augmented on the device, then forward and backward pass and
optimizer. The operations of a clip and the bytes that they read and write are counted on a device without memory
("meta"), so they are those of unfused kernels in the type of the passes.

Legend: N frames, H height, W width, C classes, B clips, T frames of a clip.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.gpu_parts.device import work as kernel_times
from benchmarks.gpu_parts.updates import wait
from benchmarks.measure import THREADS
from ranks import Learner, Loss, RunConfig, World
from ranks.engine.runs.metrics_rows import peak_memory_bytes
from ranks.workloads.video_behavior.clips.cut import ClipCutter, ReadClips
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames, LabelledVideo
from ranks.workloads.video_behavior.clips.stream import ClipStream
from ranks.workloads.video_behavior.config import ClipConfig, Config, VideoNetConfig
from ranks.workloads.video_behavior.net.layout import choose_layout
from ranks.workloads.video_behavior.net.losses import BehaviorLossSettings, behavior_loss
from ranks.workloads.video_behavior.net.nets import VideoNet, make_net

CLASSES = ("rest", "active", "walk", "lick", "shake", "withdraw")
VIDEOS, BOUT_FRAMES = 4, 16
WARM_UP, LEAST_UPDATES, MEASURED_S = 1, 1, 2.0
COPIED_BYTES = {"cuda": 1 << 30, "cpu": 1 << 26}
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


@dataclass(frozen=True)
class RandomFrames:
    """A store in memory."""

    frames_NHW: np.ndarray[Any, np.dtype[np.uint8]]

    @property
    def shape(self) -> tuple[int, int, int]:
        n, height, width = self.frames_NHW.shape
        return n, height, width

    def take_clips(self, frames_BT: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
        np.take(self.frames_NHW, frames_BT, axis=0, out=out)

    def blocks(self) -> Iterator[np.ndarray[Any, np.dtype[np.uint8]]]:
        yield self.frames_NHW

    def unmap(self) -> None:
        """Nothing is mapped."""


def random_frames(num_frames: int, size: int) -> LabelledFrames:
    """Noise with the labels of a study: bouts of all classes in a few videos."""
    frames_NHW = np.random.default_rng(0).integers(0, 256, (num_frames, size, size), dtype=np.uint8)
    class_N = np.arange(num_frames) // BOUT_FRAMES % len(CLASSES)
    length = num_frames // VIDEOS
    videos = tuple(
        LabelledVideo(f"{i}.mp4", f"mouse{i}", "", "train", i * length, length, np.arange(length) / 30)
        for i in range(VIDEOS)
    )
    labels = np.eye(len(CLASSES), dtype=np.uint8)[class_N]
    return LabelledFrames(
        RandomFrames(frames_NHW), labels, videos, CLASSES, multi=False, store_sha256="", background="rest"
    )


def clip_updates(
    device: str, precision: str, net: dict[str, Any], clip: list[int], batches: list[int], frames: int
) -> dict[str, Any]:
    """Clips/s of whole updates by batch, and of the first batch the longest kernels. `net`: settings of the network.
    `clip`: frames and pixels of a side."""
    cfg = replace(Config(), clips=ClipConfig(clip[0], size=clip[1]), net=VideoNetConfig(**net))
    data = random_frames(frames, clip[1])
    world = World.join(RunConfig(precision=precision, threads=THREADS), device=device, workload="video")
    copy_bytes_per_s = copy_bandwidth(world.device)
    work = work_of_clip(make_net(cfg, CLASSES), clip, DTYPES[precision])
    network = make_net(cfg, CLASSES)
    layout = choose_layout(network, cfg.clips, batches[0], world)
    found: dict[str, Any] = {
        "layout": layout, "work_of_a_clip": work, "copy_bytes_per_s": copy_bytes_per_s, "batches": {},
    }  # fmt: skip
    for batch in batches:
        of_batch = replace(cfg, global_batch=batch, epoch_clips=batch * 100)
        try:
            updates = ClipUpdates(of_batch, copy.deepcopy(network), data, world)
            clips_per_s, peak_bytes = measured(updates, batch, world)
        except torch.OutOfMemoryError:
            found["batches"][batch] = {"out_of_memory": True}
            continue
        found["batches"][batch] = {
            "clips_per_s": clips_per_s,
            "peak_memory_bytes": peak_bytes,
            "flop_per_s": clips_per_s * work["training_flop"],
            "share_of_copy_bandwidth": clips_per_s * work["training_bytes"] / copy_bytes_per_s,
        }
        if batch == batches[0]:
            found["kernels"] = {**kernel_times(updates.update_now, world.device, times=2), "clips": batch}
    return found


class ClipUpdates:
    """Updates of one batch size."""

    def __init__(self, cfg: Config, network: VideoNet, data: LabelledFrames, world: World) -> None:
        self.world, self.clips = world, ClipStream(ClipCutter(data, cfg.clips, world.device), cfg, world)
        self.learner = Learner(network, cfg.optim, world, global_batch=cfg.global_batch, updates=10_000)
        self.settings = BehaviorLossSettings.of(self.clips.balance, len(CLASSES), data.multi, world.device)
        self.iteration = 0

    def loss(self, model: torch.nn.Module, read: ReadClips) -> Loss:
        return behavior_loss(model, self.clips.augmented(read), settings=self.settings)

    def update(self) -> None:
        self.learner.step(self.loss, self.clips.at(self.iteration))
        self.iteration += 1

    def update_now(self) -> None:
        """One update, and wait for it."""
        self.update()
        self.learner.drain()

    def seconds_of(self, count: int) -> float:
        """Of one update, as a mean over `count`."""
        begun = time.perf_counter()
        for _ in range(count):
            self.update()
        self.learner.drain()
        wait(self.world.device)
        return (time.perf_counter() - begun) / count


def measured(updates: ClipUpdates, batch: int, world: World) -> tuple[float, int]:
    """Clips/s of the updates of one batch size, and the peak memory."""
    updates.seconds_of(WARM_UP)
    if world.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    update_s = updates.seconds_of(LEAST_UPDATES)
    more = int(MEASURED_S / update_s) - LEAST_UPDATES
    if more > 0:
        update_s = updates.seconds_of(more)
    return batch / update_s, peak_memory_bytes(world.device)


def copy_bandwidth(device: torch.device) -> float:
    """Bytes/s that a copy within the device's memory reads and writes."""
    source = torch.zeros(COPIED_BYTES["cuda" if device.type == "cuda" else "cpu"], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    times: list[float] = []
    for _ in range(20):
        wait(device)
        begun = time.perf_counter()
        target.copy_(source)
        wait(device)
        times.append(time.perf_counter() - begun)
    return 2 * source.nbytes / min(times)


class TensorTraffic(TorchDispatchMode):
    """Adds up the bytes of the tensors that operations read and write; views move nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, Tensor)]
            self.bytes += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return result


def work_of_clip(network: VideoNet, clip: list[int], dtype: torch.dtype) -> dict[str, float]:
    """Operations of one clip forwards (a multiplication and an addition are two) and, three times as many, in training;
    bytes that are counted in both."""
    network = network.to("meta", dtype)
    clips_BTHW = torch.empty((2, clip[0], clip[1], clip[1]), dtype=dtype, device="meta")  # batch norm needs two
    flops, traffic = FlopCounterMode(display=False), TensorTraffic()
    with flops, traffic:
        logits_BC = network(clips_BTHW)
        forward_flop, forward_bytes = flops.get_total_flops() / 2, traffic.bytes / 2
        logits_BC.sum().backward()
    return {
        "parameters": sum(p.numel() for p in network.parameters()),
        "forward_flop": forward_flop,
        "training_flop": 3 * forward_flop,
        "forward_bytes": forward_bytes,
        "training_bytes": traffic.bytes / 2,
    }
