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
            return map_tensors(self._copy, batch)
        with torch.cuda.stream(self._stream):
            copied = map_tensors(self._copy, batch)
        torch.cuda.current_stream(self.device).wait_stream(self._stream)
        map_tensors(self._used_by_current_stream, copied)
        return copied

    def _copy(self, tensor: Tensor) -> Tensor:
        return tensor if tensor.device.type != "cpu" else tensor.pin_memory().to(self.device, non_blocking=True)

    def _used_by_current_stream(self, tensor: Tensor) -> Tensor:
        """Its memory is not given to others before the passes that use it have ended."""
        if tensor.device.type == "cuda":
            tensor.record_stream(torch.cuda.current_stream(self.device))
        return tensor


def to_device(batch: Any, device: torch.device) -> Any:
    """A batch of the host on a device, for evaluations: any container of tensors. On the CPU it is the batch
    itself."""
    return DeviceCopy(device)(batch)
