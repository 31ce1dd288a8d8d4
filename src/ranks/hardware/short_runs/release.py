"""Give the memory of a short run back before the next one: all of them are made in one process."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

import torch


def release_memory(device: torch.device) -> None:
    """Collect what only cycles keep alive, and give free memory back to the device and the system."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    with suppress(OSError, AttributeError):  # a C library without malloc_trim
        ctypes.CDLL(None).malloc_trim(0)
