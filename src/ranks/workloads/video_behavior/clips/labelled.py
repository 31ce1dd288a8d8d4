"""The frames of a study with their labels: one row for each frame of the store, all videos one after another.

Legend: N frames of all videos, H height, W width, C classes, K bouts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ranks.workloads.video_behavior.annotations.frame_labels import IGNORED
from ranks.workloads.video_behavior.metrics.bouts import bouts_of, multi_label_bouts

Ints: TypeAlias = npt.NDArray[np.int64]


class StoredFrames(Protocol):
    """The decoded frames of all videos, one after another, in memory or on disk."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(N, H, W)."""
        ...

    def take_clips(self, frames_BT: Ints, out: npt.NDArray[np.uint8]) -> None:
        """Copy frames into `out`, uint8[B, T, H, W]. Each row of `frames_BT` lies in one video."""
        ...

    def blocks(self) -> Iterator[npt.NDArray[np.uint8]]:
        """uint8[n, H, W]: copies of all frames, some at a time, in order."""
        ...

    def unmap(self) -> None:
        """Give the memory back that holds frames which were read from disk; they can be read again."""
        ...


@dataclass(frozen=True)
class LabelledVideo:
    """One video: whose it is, and which rows of the store are its frames."""

    name: str
    animal: str
    group: str
    split: str
    first_frame: int
    num_frames: int
    times_s_N: npt.NDArray[np.float64]
    """Time stamps of its frames."""
    trials: int = 1
    """Recordings that the annotation has joined in time."""
    path: str = ""
    """As dataset.csv writes it."""
    file: Path | None = None


@dataclass(frozen=True)
class LabelledFrames:
    """All frames of a study.

    `label_NC`: uint8[N, C]: 1 where a frame shows a class. Exclusive labels have at most one 1 in a row; a row of
    zeros is then a frame that neither training nor a metric counts. With `multi`, it is a frame without a behaviour.
    """

    store: StoredFrames
    label_NC: npt.NDArray[np.uint8]
    videos: tuple[LabelledVideo, ...]
    classes: tuple[str, ...]
    multi: bool
    store_sha256: str
    background: str
    """The class of frames without a code. It is not in `classes` where no frame shows it."""
    uncoded: str = ""
    """The background, where no annotation names it: it is no behaviour. "" where annotations do."""

    @property
    def excluded(self) -> tuple[int, ...]:
        """The background among the classes. Means over bouts leave it out: its bouts are what lies between others."""
        return () if self.multi else tuple(c for c, name in enumerate(self.classes) if name == self.background)

    @property
    def split_of_animals(self) -> tuple[str, ...]:
        """What `Config.split` keeps: m1:train and so on, by name."""
        return tuple(sorted({f"{video.animal}:{video.split}" for video in self.videos}))

    @property
    def split_of_videos(self) -> tuple[str, ...]:
        """What `Config.video_split` keeps: day1/m1.mp4:train and so on, by path."""
        return tuple(sorted({f"{video.path}:{video.split}" for video in self.videos if video.path}))

    @cached_property
    def class_N(self) -> Ints:
        """int64[N]: the class of each frame of exclusive labels, or IGNORED."""
        return np.where(self.label_NC.any(1), self.label_NC.argmax(1), IGNORED).astype(np.int64)

    @cached_property
    def video_N(self) -> Ints:
        """int64[N]: the index of each frame's video."""
        return np.repeat(np.arange(len(self.videos)), [video.num_frames for video in self.videos])

    @cached_property
    def bounds_V2(self) -> Ints:
        """int64[V, 2]: the first and the last frame of each video."""
        return np.array([(v.first_frame, v.first_frame + v.num_frames - 1) for v in self.videos], np.int64).reshape(
            -1, 2
        )

    @property
    def counted_N(self) -> npt.NDArray[np.bool_]:
        """bool[N]: the frames that training and metrics count."""
        return np.ones(len(self.label_NC), np.bool_) if self.multi else self.class_N != IGNORED

    def frames_of(self, split: str, stride: int = 1) -> Ints:
        """int64[n]: every so many counted frames of a split, in order."""
        frames_n = self.all_frames_of(split)
        return frames_n[self.counted_N[frames_n]][::stride]

    def all_frames_of(self, split: str) -> Ints:
        """int64[n]: the frames of a split in order, also those that no metric counts."""
        wanted_V = np.array([video.split == split for video in self.videos], np.bool_)
        return np.flatnonzero(wanted_V[self.video_N])

    def videos_of(self, split: str) -> list[LabelledVideo]:
        """The videos of a split."""
        return [video for video in self.videos if video.split == split]

    def with_splits(self, splits: Sequence[str]) -> LabelledFrames:
        """The same frames with another split of each video."""
        videos = tuple(replace(video, split=split) for video, split in zip(self.videos, splits, strict=True))
        return replace(self, videos=videos)

    @cached_property
    def sha256(self) -> str:
        """Of frames, labels, animals and splits: what a run's identity says of its data."""
        digest = hashlib.sha256(self.store_sha256.encode())
        parts = [(video.name, video.animal, video.split, video.first_frame, video.num_frames) for video in self.videos]
        digest.update(repr((self.classes, self.multi, parts)).encode())
        digest.update(np.ascontiguousarray(self.label_NC).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class ClipBouts:
    """Runs of frames of one video that show the same class: class, first frame and length of each, int64[K]."""

    class_K: Ints
    first_K: Ints
    length_K: Ints

    def __len__(self) -> int:
        return len(self.class_K)


def split_bouts(data: LabelledFrames, split: str) -> ClipBouts:
    """The bouts of a split by class, video and time. With multi, frames without a behaviour are of class number C."""
    found = [np.zeros((0, 3), np.int64)]
    for video in data.videos_of(split):
        rows = slice(video.first_frame, video.first_frame + video.num_frames)
        if data.multi:
            label_nC = data.label_NC[rows].astype(np.int64)
            none_n1 = (~label_nC.any(1, keepdims=True)).astype(np.int64)
            bouts_K3 = multi_label_bouts(np.concatenate([label_nC, none_n1], 1))
        else:
            bouts_K3 = bouts_of(data.class_N[rows])
        found.append(bouts_K3 + np.array([0, video.first_frame, video.first_frame]))
    bouts_K3 = np.concatenate(found)
    class_K, first_K, stop_K = bouts_K3[np.argsort(bouts_K3[:, 0], kind="stable")].T
    return ClipBouts(class_K, first_K, stop_K - first_K)
