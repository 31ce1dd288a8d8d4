"""An all-reduce of two processes over gloo, as the ranks of one machine make it."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from ranks.engine.distributed.rendezvous.meeting import LOOPBACK
from ranks.hardware.doctor.finding import Asked, Finding, failure, note, ok, warning

SMALL, LARGE, TIMES = 1, 4 * 2**20, 5
"""Numbers of float32, and how often."""
LIMIT_S = 10.0
NEEDED = 512 * 2**20
"""Bytes of the two processes. With less, a container could end another program of its own to make room."""
SLOW_BYTES_PER_S = 100e6


@dataclass(frozen=True)
class CollectiveFacts:
    """Of the fastest of some all-reduces."""

    small_s: float
    large_s: float
    is_right: bool
    is_skipped: bool = False
    """There is too little memory to try."""


def measure(asked: Asked) -> CollectiveFacts:
    """Two processes: this one, and one that is forked after torch is imported."""
    if asked.memory_left < NEEDED:
        return CollectiveFacts(0.0, 0.0, is_right=True, is_skipped=True)
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = LOOPBACK
    with tempfile.TemporaryDirectory(prefix="ranks-doctor-") as folder:
        other = os.fork()
        rank = 0 if other else 1
        try:
            store = dist.FileStore(str(Path(folder) / "store"), 2)
            dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=LIMIT_S))
            small = min(_all_reduce(torch.ones(SMALL)) for _ in range(TIMES))
            numbers = torch.arange(LARGE, dtype=torch.float32) % 97 + rank
            expected = 2 * (torch.arange(LARGE, dtype=torch.float32) % 97) + 1
            large = min(_all_reduce(numbers.clone()) for _ in range(TIMES))
            dist.all_reduce(numbers)
            facts = CollectiveFacts(small, large, bool((numbers == expected).all()))
            dist.destroy_process_group()
        except BaseException as error:
            if rank:
                print(error, file=sys.stderr)
                os._exit(1)
            raise
        if rank:
            os._exit(0)
        os.waitpid(other, 0)
    return facts


def _all_reduce(numbers: object) -> float:
    import torch.distributed as dist

    began = time.perf_counter()
    dist.all_reduce(numbers)
    return time.perf_counter() - began


def judge(facts: CollectiveFacts, asked: Asked) -> Iterator[Finding]:
    """The sums are right, and not very slow."""
    if facts.is_skipped:
        yield note("all-reduce", f"not tried: it needs {NEEDED / 2**20:.0f} MiB of memory")
        return
    speed = 4 * LARGE / facts.large_s
    found = f"4 bytes in {facts.small_s * 1e6:,.0f} us, {4 * LARGE / 2**20:.0f} MiB at {speed / 1e6:,.0f} MB/s"
    if not facts.is_right:
        yield failure(
            "all-reduce", "the sum of two processes is wrong", "the right sum", "test the memory of this machine"
        )
    elif speed < SLOW_BYTES_PER_S:
        expected = f"{SLOW_BYTES_PER_S / 1e6:.0f} MB/s"
        yield warning("all-reduce", found, expected, "end other programs, and look at limits of the container's CPU")
    else:
        yield ok("all-reduce", f"two processes over gloo: {found}")
