"""Copies batches of the host to the rank's device, without making host or device wait."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ranks.data.loading.tensor_tree import map_tensors


class DeviceCopy:
    """Copies through pinned memory. On CUDA a stream of its own makes the copy while the device computes."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self, batch: Any) -> Any:
        """The batch on the device, ready for the work that is queued after this call. On the CPU it is the batch
        itself."""
        if self.device.type == "cpu":
            return batch
        if self._stream is None:
            return to_device(batch, self.device)
        with torch.cuda.stream(self._stream):
            copied = to_device(batch, self.device)
        torch.cuda.current_stream(self.device).wait_stream(self._stream)
        map_tensors(self._used_by_current_stream, copied)
        return copied

    def _used_by_current_stream(self, tensor: Tensor) -> Tensor:
        """Its memory is not given to others before the passes that use it have ended."""
        if tensor.device.type == "cuda":
            tensor.record_stream(torch.cuda.current_stream(self.device))
        return tensor


def to_device(batch: Any, device: torch.device) -> Any:
    """A batch of the host on a device: any container of tensors. The copy waits for the device's present work. On the
    CPU it is the batch itself."""

    def copy(tensor: Tensor) -> Tensor:
        return tensor if tensor.device.type != "cpu" else tensor.pin_memory().to(device, non_blocking=True)

    return batch if device.type == "cpu" else map_tensors(copy, batch)
