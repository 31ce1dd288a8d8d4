"""Cuts clips out of a store: on the device where the whole store fits there, else on the host.

A clip repeats the first or the last frame of its video where it would reach beyond it.

Legend: N frames of the store, B clips, T frames of a clip, H height, W width, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.config import ClipConfig

SHARE_OF_MEMORY = 0.6
"""The store may take this share of the free memory of a CUDA device."""


@dataclass(frozen=True)
class CutClips:
    """Clips [B, T, H, W] in uint8, the labels [B, C] of their centre frames, and their numbers, on the device."""

    clips_BTHW: Tensor
    label_BC: Tensor
    ids_B: Tensor

    def __len__(self) -> int:
        return len(self.ids_B)


class ClipCutter:
    """Cuts clips around frames of a study."""

    def __init__(
        self, data: LabelledFrames, clips: ClipConfig, device: torch.device, resident: bool | None = None
    ) -> None:
        """`resident`: whether the store is copied to the device; by default where it fits. On a CPU it stays in its
        memory map."""
        self.data, self.clips, self.device = data, clips, device
        self.resident = _fits(data.store.nbytes, device) if resident is None else resident
        self._bounds_N2 = torch.from_numpy(data.bounds_V2[data.video_N])
        self._offset_T = clips.stride * (torch.arange(clips.frames) - clips.frames // 2)
        self._label_NC = torch.from_numpy(np.ascontiguousarray(data.label_NC)).to(device)
        self._offset_on_device_T = self._offset_T.to(device)
        self._store_NHW: Tensor | None = None
        if self.resident:
            self._store_NHW = torch.from_numpy(data.store.read_all()).to(device)

    def cut(self, frame_B: Tensor, ids_B: Tensor, shift_B: Tensor | None = None) -> CutClips:
        """The clips whose labelled frames are `frame_B`, int64[B] on the host. `shift_B`: frames by which each clip is
        shifted from its labelled frame. `ids_B`: numbers of the clips, passed on to the device."""
        centre_B = frame_B if shift_B is None else frame_B + shift_B
        numbers_5B = torch.stack([ids_B, frame_B, centre_B, *self._bounds_N2[frame_B].T])
        if self._store_NHW is None:
            clips_BTHW = self._gathered_on_host(self._frames_of(numbers_5B, self._offset_T))
            numbers_5B = to_device(numbers_5B, self.device)
        else:
            numbers_5B = to_device(numbers_5B, self.device)
            clips_BTHW = self._store_NHW[self._frames_of(numbers_5B, self._offset_on_device_T)]
        return CutClips(clips_BTHW, self._label_NC[numbers_5B[1]], numbers_5B[0])

    @staticmethod
    def _frames_of(numbers_5B: Tensor, offset_T: Tensor) -> Tensor:
        """int64[B, T]: the frames of each clip."""
        _, _, centre_B, first_B, last_B = numbers_5B
        frame_BT = centre_B[:, None] + offset_T
        return torch.minimum(torch.maximum(frame_BT, first_B[:, None]), last_B[:, None])

    def _gathered_on_host(self, frame_BT: Tensor) -> Tensor:
        """The frames read from the memory map, in pinned memory, on their way to the device."""
        shape = (*frame_BT.shape, self.clips.size, self.clips.size)
        clips_BTHW = torch.empty(shape, dtype=torch.uint8, pin_memory=self.device.type != "cpu")
        self.data.store.take_clips(frame_BT.numpy(), clips_BTHW.numpy())
        return clips_BTHW.to(self.device, non_blocking=True)


def to_device(host: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor without a wait of the host."""
    return host if device.type == "cpu" else host.pin_memory().to(device, non_blocking=True)


def _fits(num_bytes: int, device: torch.device) -> bool:
    """Whether a store belongs into the memory of a device."""
    if device.type == "cuda":
        return num_bytes <= SHARE_OF_MEMORY * torch.cuda.mem_get_info(device)[0]
    return device.type != "cpu"
