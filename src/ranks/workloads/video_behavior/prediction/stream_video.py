"""Probabilities of all frames of a video, with few frames in memory.

    decoder ─► a window of the last frames ─► clips around each frame ─► net ─► probabilities

Each frame is decoded once. A clip repeats the first or the last frame where it would reach beyond the video, as in
training.

Legend: N frames of the video, W frames of the window, B clips, T frames of a clip, H, W pixels, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ranks.workloads.video_behavior.clips.augment import scaled
from ranks.workloads.video_behavior.config import ClipConfig
from ranks.workloads.video_behavior.net.losses import probabilities
from ranks.workloads.video_behavior.net.nets import VideoNet
from ranks.workloads.video_behavior.video.decode import FrameBlock

PIXELS_OF_A_PASS = 64 * 17 * 64 * 64
"""A forward pass on the CPU has as many clips as hold so many pixels; more of them are no faster."""
PASSES_ON_A_GPU = 16
"""A GPU takes so many times as many."""


@dataclass(frozen=True)
class PredictedFrames:
    """`probability_NC`: float64. `times_s_N`: seconds from the first frame."""

    probability_NC: NDArray[np.float64]
    times_s_N: NDArray[np.float64]


def predict_blocks(
    net: VideoNet, clips: ClipConfig, blocks: Iterator[FrameBlock], device: torch.device, done: Callable[[int], None]
) -> PredictedFrames:
    """The probabilities of all frames. `done`: gets the number of frames after each pass."""
    times, found = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
    pixels = clips.frames * clips.size**2
    most = max(1, PIXELS_OF_A_PASS * (1 if device.type == "cpu" else PASSES_ON_A_GPU) // pixels)

    def timed() -> Iterator[NDArray[np.uint8]]:
        for block in blocks:
            times.append(block.times_s_N)
            yield block.frames_NHW

    with torch.inference_mode():
        for clips_BTHW in clips_of_stream(timed(), clips, most):
            logits_BC = net(scaled(clips_BTHW.to(device)))
            found.append(probabilities(logits_BC.float(), net.multi).cpu().numpy().astype(np.float64))
            done(len(clips_BTHW))
    return PredictedFrames(np.concatenate(found), np.concatenate(times))


def clips_of_stream(frames: Iterator[NDArray[np.uint8]], clips: ClipConfig, most: int) -> Iterator[Tensor]:
    """uint8[B, T, H, W], B at most `most`: the clip of each frame, in order."""
    reach = clips.stride * (clips.frames // 2)
    offset_T = clips.stride * (np.arange(clips.frames) - clips.frames // 2)
    window_WHW = np.empty((0, clips.size, clips.size), np.uint8)
    first = centre = 0  # the frame that the window begins with; the next frame that gets a clip

    def cut(centres: range, last: int) -> Tensor:
        """The clips of some frames; `last`: the last frame that may be shown."""
        wanted_BT = np.clip(np.array(centres)[:, None] + offset_T, 0, last) - first
        return torch.from_numpy(window_WHW[wanted_BT])

    for block_NHW in frames:
        window_WHW = np.concatenate([window_WHW, block_NHW])
        loaded = first + len(window_WHW)
        while centre + reach < loaded:
            stop = min(centre + most, loaded - reach)
            yield cut(range(centre, stop), loaded - 1)
            centre = stop
        kept = max(0, centre - reach)  # earlier frames are in no clip that is still to come
        window_WHW, first = window_WHW[kept - first :], kept
    total = first + len(window_WHW)
    while centre < total:
        stop = min(centre + most, total)
        yield cut(range(centre, stop), total - 1)
        centre = stop
