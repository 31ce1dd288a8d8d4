"""How much memory ranks may hold on a device."""

from __future__ import annotations

import resource

import psutil
import torch

from ranks.engine.distributed.rendezvous.cgroup import memory_left


def capacity_bytes(device: torch.device, num_ranks: int) -> int:
    """What torch may hold on one GPU, or what `num_ranks` processes of a CPU machine may hold together, this one
    included.

    On a GPU the CUDA context, the kernels of libraries and other processes take memory that torch cannot have. Call it
    after a run: only then are they loaded. torch's own limit counts too (`per_process_memory_fraction`)."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        allowed = int(total * torch.cuda.get_per_process_memory_fraction(device))
        return min(allowed, free + torch.cuda.memory_reserved(device))
    own = psutil.Process().memory_info()
    left = memory_left(psutil.virtual_memory().available) + own.rss
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return left if limit == resource.RLIM_INFINITY else min(left, num_ranks * (own.rss + max(0, limit - own.vms)))


def capacity_of_rank(device: torch.device, num_ranks: int) -> int:
    """What one rank may hold: on its own GPU, or an equal part of what all ranks of a CPU machine may hold."""
    return capacity_bytes(device, num_ranks) // (1 if device.type == "cuda" else num_ranks)
