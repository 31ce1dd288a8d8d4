"""Checks that the trees and batches of self-play fit in memory, before any of them is allocated."""

from __future__ import annotations

import math
import socket
from typing import NamedTuple

import psutil
import torch

from ranks.engine.distributed.rendezvous.cgroup import memory_left
from ranks.engine.distributed.world import World
from ranks.errors import UserError
from ranks.search.config import SearchConfig
from ranks.search.game import Game
from ranks.search.trees import tree_bytes
from ranks.selfplay.net.batch_evaluator import batch_bytes


class MemoryOfRank(NamedTuple):
    """In bytes."""

    host: str
    needed: int
    """On the host: trees and batches."""
    free: float
    """On the host."""
    needed_of_device: int
    """The batches; what the net needs is not known."""
    free_of_device: float


def check_memory(game: Game, slots: int, rows: int, search: SearchConfig, world: World, name: str = "slots") -> None:
    """Raises UserError on all ranks where the trees and batches of a host's ranks do not fit in its free memory, or the
    batches of a rank in that of its device.

    `slots`: of this rank; `rows`: of all its batches; `name`: what the slots are. Every rank calls it, before any of
    them allocates.
    """
    batches = batch_bytes(game, rows)
    first, second = (tree_bytes(game, search, count) for count in (1, 2))
    trees = first + (slots - 1) * (second - first)
    free = memory_left(psutil.virtual_memory().available)
    mine = MemoryOfRank(socket.gethostname(), trees + batches, free, batches, device_memory_left(world.device))
    of_ranks = world.comm.gather_objects(mine)
    for host in sorted({rank.host for rank in of_ranks}):
        here = [rank for rank in of_ranks if rank.host == host]
        needed, free = sum(rank.needed for rank in here), min(rank.free for rank in here)
        if needed > free:
            asked = f"{slots:,} {name} on a rank, and {len(here)} ranks on {host}"
            found = f"their trees and batches need {gib(needed)}, and {gib(free)} are free"
            raise UserError(asked, found, f"give fewer {name} or fewer simulations")
    for number, rank in enumerate(of_ranks):
        if rank.needed_of_device > rank.free_of_device:
            needed, free = gib(rank.needed_of_device), gib(rank.free_of_device)
            found = f"the batches of rank {number} need {needed} on its device, and {free} are free"
            raise UserError(f"{slots:,} {name} on a rank", found, f"give fewer {name}")


def device_memory_left(device: torch.device) -> float:
    """Bytes that torch can allocate on a CUDA device now; infinite on others, where nothing says it."""
    if device.type != "cuda":
        return math.inf
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


def gib(num_bytes: float) -> str:
    """A number of bytes as text."""
    return f"{num_bytes / 2**30:,.1f} GiB"
