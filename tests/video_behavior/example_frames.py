"""Small labelled frames without video files: a bright square that rests, moves to the right, or blinks.

Legend: N frames, H height, W width, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from ranks import RunConfig, World
from ranks.engine.distributed.comm import Comm
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames, LabelledVideo, StoredFrames
from ranks.workloads.video_behavior.config import ClipConfig, Config, VideoNetConfig

CLASSES = ("rest", "move", "blink")
SPLITS = ("train", "train", "train", "val", "test", "test")
SMALL = replace(
    Config(),
    clips=ClipConfig(frames=5, size=16),
    net=VideoNetConfig(width=4, blocks=(1, 1)),
    epoch_clips=64,
    global_batch=16,
    iterations=4,
    eval_every=2,
)
CPU = torch.device("cpu")


def square(label_N: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
    """uint8[N, H, W]: the square moves in class 1, and is hidden in every other frame of class 2."""
    frames_NHW = random.integers(0, 20, (len(label_N), size, size)).astype(np.uint8)
    at = 0
    for number, label in enumerate(label_N.tolist()):
        at = (at + (label == 1)) % (size - 4)
        if label != 2 or number % 2:
            frames_NHW[number, 5:9, at : at + 4] += 200
    return frames_NHW


@dataclass(frozen=True)
class ArrayFrames:
    """A store in memory."""

    frames_NHW: np.ndarray

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames_NHW.shape

    def take_clips(self, frames_BT: np.ndarray, out: np.ndarray) -> None:
        np.take(self.frames_NHW, frames_BT, axis=0, out=out)

    def blocks(self) -> Iterator[np.ndarray]:
        yield from (self.frames_NHW[at : at + 100].copy() for at in range(0, len(self.frames_NHW), 100))

    def unmap(self) -> None:
        pass


def pixels_of(store: StoredFrames) -> np.ndarray:
    """uint8[N, H, W]: all frames."""
    return np.concatenate(list(store.blocks()))


def example_frames(num_frames: int = 48, size: int = 16, multi: bool = False) -> LabelledFrames:
    """Six videos of six animals, bouts of 4 to 12 frames."""
    random = np.random.default_rng(0)
    frames, labels, videos = [], [], []
    for number, split in enumerate(SPLITS):
        label_N = np.repeat(random.permutation(np.arange(12) % 3), random.integers(4, 13, 12))[:num_frames]
        frames.append(square(label_N, size, random))
        labels.append(np.eye(3, dtype=np.uint8)[label_N])
        times_s_N = np.arange(len(label_N)) / 25
        first = sum(len(part) for part in frames[:-1])
        animal = f"m{number}"
        videos.append(LabelledVideo(f"{animal}.mp4", animal, "", split, first, len(label_N), times_s_N))
    label_NC = np.concatenate(labels)
    if multi:  # without a class for the background; some frames show both behaviours
        label_NC[::7, 2] = 1
        label_NC = label_NC[:, 1:]
    classes = CLASSES[1:] if multi else CLASSES
    return LabelledFrames(
        ArrayFrames(np.concatenate(frames)), label_NC, tuple(videos), classes, multi, "0" * 64, "rest"
    )


def world_of(rank: int = 0, size: int = 1, config: RunConfig | None = None) -> World:
    """One rank of several, as far as no collective is needed."""
    world = World(config or RunConfig(), ProcessEnv("alone"), CPU, Comm(rank, size, staged=False), "test")
    world.stop.install()
    world.stop.uninstall()  # closes its sockets
    return world
