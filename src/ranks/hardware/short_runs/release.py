"""Give the memory of a short run back before the next one: all of them are made in one process."""

from __future__ import annotations

import gc

import torch

from ranks.engine.distributed.malloc import give_back_freed_memory


def release_memory(device: torch.device) -> None:
    """Collect what only cycles keep alive, and give free memory back to the device and the system."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    give_back_freed_memory()
