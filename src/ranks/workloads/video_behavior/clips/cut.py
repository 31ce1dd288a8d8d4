"""Cuts clips out of a store: on the device where the whole store fits there, else on the host.

A clip repeats the first or the last frame of its video where it would reach beyond it. With `--clips.shuffle` the
frames around its labelled one are in a random order.

Legend: N frames of the store, V videos, B clips, T frames of a clip, H height, W width, C classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ranks.data import to_device
from ranks.data.loading.place import empty
from ranks.engine.sharding import rng
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames, StoredFrames
from ranks.workloads.video_behavior.config import ClipConfig

SHARE_OF_MEMORY = 0.6
"""The store may take this share of the free memory of a CUDA device."""
MAPPED_BYTES = 2**27
"""A reader unmaps the store after it has read so many. Pages of a memory map count as memory of the process."""


@dataclass(frozen=True)
class CutClips:
    """Clips [B, T, H, W] in uint8, the labels [B, C] of their centre frames, and their numbers, on the device."""

    clips_BTHW: Tensor
    label_BC: Tensor
    ids_B: Tensor

    def __len__(self) -> int:
        return len(self.ids_B)


@dataclass(frozen=True)
class ReadClips:
    """What the host knows of some clips. `frame_BT`: int64[B, T], the frames of the store that they show.
    `clips_BTHW`: None where the device has the store and cuts them out itself. `key`: of their augmentation."""

    frame_BT: Tensor
    clips_BTHW: Tensor | None
    label_BC: Tensor
    ids_B: Tensor
    key: int

    def __len__(self) -> int:
        return len(self.ids_B)


class ClipReader:
    """The part of the host: which frames a clip shows, and their pixels. Worker processes have a copy."""

    def __init__(self, data: LabelledFrames, clips: ClipConfig, *, pixels: bool, pinned: bool) -> None:
        """`pixels`: read them, from the memory map of the store. `pinned`: into memory from where a GPU copies."""
        self.store, self.size, self.pixels, self.pinned = data.store, clips.size, pixels, pinned
        self._bounds_V2, self._first_V = torch.from_numpy(data.bounds_V2), torch.from_numpy(data.bounds_V2[:, 0].copy())
        self._offset_T = clips.stride * (torch.arange(clips.frames) - clips.frames // 2)
        self._shuffle, self._mapped_bytes = clips.shuffle, 0
        self._label_NC = torch.from_numpy(np.ascontiguousarray(data.label_NC))

    def video_of(self, frame_B: Tensor) -> Tensor:
        """int64[B]: the index of the video of each frame."""
        return torch.searchsorted(self._first_V, frame_B.contiguous(), right=True) - 1

    def read(self, frame_B: Tensor, ids_B: Tensor, shift_B: Tensor | None = None, key: int = 0) -> ReadClips:
        """The clips whose labelled frames are `frame_B`, int64[B]. `shift_B`: frames by which each clip is shifted from
        its labelled frame. `key`: of their augmentation, and of the order of shuffled frames."""
        centre_B = frame_B if shift_B is None else frame_B + shift_B
        first_B, last_B = self._bounds_V2[self.video_of(frame_B)].T
        frame_BT = torch.minimum(torch.maximum(centre_B[:, None] + self._offset_T, first_B[:, None]), last_B[:, None])
        if self._shuffle:
            frame_BT = shuffled(frame_BT, rng.key(key, "clips/shuffle", 0), ids_B)
        clips_BTHW = None
        if self.pixels:
            clips_BTHW = empty((*frame_BT.shape, self.size, self.size), torch.uint8, pinned=self.pinned)
            self.store.take_clips(frame_BT.numpy(), clips_BTHW.numpy())
            self._mapped_bytes += clips_BTHW.nbytes
            if self._mapped_bytes > MAPPED_BYTES:
                self.store.unmap()
                self._mapped_bytes = 0
        return ReadClips(frame_BT, clips_BTHW, self._label_NC[frame_B], ids_B, key)


def shuffled(frame_BT: Tensor, key: int, ids_B: Tensor) -> Tensor:
    """The frames of each clip in a random order of its own; the centre frame stays in its place."""
    centre = frame_BT.shape[1] // 2
    order_BT = rng.bits(key, ids_B, frame_BT.shape[1] - 1).argsort(dim=1, stable=True)
    before_BT, after_BT = frame_BT[:, :centre], frame_BT[:, centre + 1 :]
    around_BT = torch.cat([before_BT, after_BT], 1).gather(1, order_BT)
    return torch.cat([around_BT[:, :centre], frame_BT[:, centre : centre + 1], around_BT[:, centre:]], 1)


class ClipCutter:
    """Cuts clips around frames of a study."""

    def __init__(
        self, data: LabelledFrames, clips: ClipConfig, device: torch.device, resident: bool | None = None
    ) -> None:
        """`resident`: whether the store is copied to the device; by default where it fits. On a CPU it stays in its
        memory map."""
        self.data, self.clips, self.device = data, clips, device
        self.resident = _fits(math.prod(data.store.shape), device) if resident is None else resident
        self.reader = ClipReader(data, clips, pixels=not self.resident, pinned=device.type != "cpu")
        self._store_NHW = _copied(data.store, device) if self.resident else None

    def cut(self, frame_B: Tensor, ids_B: Tensor, shift_B: Tensor | None = None) -> CutClips:
        """The clips whose labelled frames are `frame_B`, int64[B] on the host, as `ClipReader.read`."""
        return self.on_device(to_device(self.reader.read(frame_B, ids_B, shift_B), self.device))

    def on_device(self, read: ReadClips) -> CutClips:
        """The pixels of clips, once `read` has been copied to the device."""
        clips_BTHW = read.clips_BTHW
        if clips_BTHW is None:
            assert self._store_NHW is not None
            clips_BTHW = self._store_NHW[read.frame_BT]
        return CutClips(clips_BTHW, read.label_BC, read.ids_B)


def _copied(store: StoredFrames, device: torch.device) -> Tensor:
    """uint8[N, H, W]: the store on the device. The host holds one block at a time: each rank of a host copies."""
    store_NHW = torch.empty(store.shape, dtype=torch.uint8, device=device)
    first = 0
    for block_nHW in store.blocks():
        store_NHW[first : first + len(block_nHW)].copy_(torch.from_numpy(block_nHW))
        first += len(block_nHW)
    return store_NHW


def _fits(num_bytes: int, device: torch.device) -> bool:
    """Whether a store belongs into the memory of a device."""
    if device.type == "cuda":
        return num_bytes <= SHARE_OF_MEMORY * torch.cuda.mem_get_info(device)[0]
    return device.type != "cpu"
