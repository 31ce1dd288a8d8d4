"""Main memory, the limit of the container, and /dev/shm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage

import psutil

from ranks.engine.distributed.rendezvous.cgroup import memory_limit
from ranks.hardware.doctor.finding import Asked, Finding, failure, note, ok

GIB, MIB = 2**30, 2**20
OF_A_RANK = 600 * MIB
"""A process with torch and a small model."""
SHM = 48 * MIB
"""Docker's default of 64 MB is enough for ranks on a CPU."""
SHM_OF_A_GPU = 128 * MIB
"""For the buffers of NCCL and the workers of loaders."""


@dataclass(frozen=True)
class MemoryFacts:
    """Bytes."""

    total: int
    available: int
    """On the machine and within the limit, before the checks began."""
    limit: int | None
    """Of the container."""
    shm_total: int | None
    shm_free: int | None
    """None: there is no /dev/shm."""


def measure(asked: Asked) -> MemoryFacts:
    """Ask the kernel."""
    memory = psutil.virtual_memory()
    limit = memory_limit()
    shm = disk_usage("/dev/shm") if Path("/dev/shm").is_dir() else None
    bounded = limit if limit is not None and limit < memory.total else None
    return MemoryFacts(
        memory.total,
        asked.memory_left,
        bounded,
        shm.total if shm else None,
        shm.free if shm else None,
    )


def judge(facts: MemoryFacts, asked: Asked) -> Iterator[Finding]:
    """Room for the ranks."""
    needed = asked.ranks * OF_A_RANK
    inside = f" (the container's limit is {facts.limit / GIB:.1f} GiB)" if facts.limit is not None else ""
    found = f"{facts.available / GIB:.1f} of {facts.total / GIB:.1f} GiB free{inside}"
    if facts.available < needed:
        limited = facts.limit is not None and facts.limit < 2 * needed
        do = "raise the container's limit: docker run --memory 16g" if limited else "end other programs, or fewer ranks"
        yield failure("memory", found, f"{needed / GIB:.1f} GiB for {asked.ranks} ranks without their data", do)
    else:
        yield ok("memory", found)
    if facts.shm_free is None:
        yield note("/dev/shm", "this system has none")
        return
    least = max(SHM, SHM_OF_A_GPU * (asked.gpus or 0))
    found = f"{facts.shm_free / MIB:,.0f} MiB free"
    if facts.shm_free < least:
        do = "docker run --shm-size 8g, or: mount -o remount,size=8g /dev/shm"
        yield failure("/dev/shm", found, f"{least / MIB:,.0f} MiB", do)
    else:
        yield ok("/dev/shm", found)
