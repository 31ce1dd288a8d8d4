"""Limits of this user and container: open files, processes, locked memory, address space, file size, CPU time."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from ranks.engine.distributed.rendezvous.cgroup import tasks_left, tasks_limit
from ranks.hardware.doctor.finding import Asked, Finding, failure, ok, warning

MIB = 2**20
FILES, FILES_OF_A_RANK = 256, 64
TASKS, TASKS_OF_A_RANK = 64, 32
LOCKED = 64 * MIB
UNLIMITED = -1
RDMA_CARDS = Path("/sys/class/infiniband")
GIB = 2**30
SPACE_OF_A_RANK = {False: 8 * GIB, True: 64 * GIB}
"""Addresses that a rank maps: libraries, threads' stacks and buffers. CUDA maps the memory of all its GPUs too."""


@dataclass(frozen=True)
class LimitsFacts:
    """Soft limits; -1 where there is none."""

    files: int
    files_hard: int
    tasks_left: int | None
    """Processes and threads that the container or this user may still start; None without a limit."""
    locked: int
    address_space: int = UNLIMITED
    file_bytes: int = UNLIMITED
    """The longest file that may be written."""
    cpu_s: int = UNLIMITED
    """CPU seconds after which a process is killed."""
    tasks_limit: int | None = None
    """How many there may be together."""
    has_rdma: bool = False
    """Whether there is an InfiniBand or RoCE card: NCCL locks memory for it."""


def measure(asked: Asked) -> LimitsFacts:
    """Ask the kernel."""
    files, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] if hasattr(resource, "RLIMIT_MEMLOCK") else UNLIMITED
    space, file_bytes, cpu_s = (
        resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU)
    )
    left, limit = tasks_left(), tasks_limit()
    of_user = _of_user()
    if of_user is not None and (left is None or of_user[0] < left):
        left, limit = of_user
    has_rdma = RDMA_CARDS.is_dir() and any(RDMA_CARDS.iterdir())
    return LimitsFacts(files, hard, left, locked, space, file_bytes, cpu_s, limit, has_rdma)


def _of_user() -> tuple[int, int] | None:
    """Processes and threads that this user may still start, and the limit of `ulimit -u`; None without one. It does
    not bind root."""
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if limit == UNLIMITED or os.geteuid() == 0:
        return None
    rows = (process.info for process in psutil.process_iter(["uids", "num_threads"]))
    used = sum(row["num_threads"] or 1 for row in rows if row["uids"] and row["uids"].real == os.getuid())
    return max(0, limit - used), limit


def judge(facts: LimitsFacts, asked: Asked) -> Iterator[Finding]:
    """Enough for the ranks and what they open."""
    files = FILES + FILES_OF_A_RANK * asked.ranks
    if facts.files != UNLIMITED and facts.files < files:
        raised = facts.files_hard if facts.files_hard != UNLIMITED and facts.files_hard < 65_536 else 65_536
        do = f"ulimit -n {raised}" if raised >= files else "raise the hard limit: /etc/security/limits.conf, nofile"
        yield failure("open files", f"a limit of {facts.files}", f"{files} or more", do)
    else:
        yield ok("open files", "unlimited" if facts.files == UNLIMITED else f"a limit of {facts.files:,}")
    tasks = TASKS + TASKS_OF_A_RANK * asked.ranks
    if facts.tasks_left is not None and facts.tasks_left < tasks:
        of = f", of {facts.tasks_limit:,} that are allowed" if facts.tasks_limit is not None else ""
        found = f"{facts.tasks_left} more processes and threads{of}"
        yield failure("processes", found, f"{tasks} or more", "docker run --pids-limit 4096; ulimit -u 4096")
    if UNLIMITED < facts.address_space < SPACE_OF_A_RANK[bool(asked.gpus)]:
        found = f"{facts.address_space / GIB:.1f} GiB of addresses for each process"
        yield failure("address space", found, "unlimited", "ulimit -v unlimited")
    if UNLIMITED < facts.file_bytes < asked.checkpoint_bytes:
        found = f"files of at most {facts.file_bytes / MIB:,.0f} MiB may be written"
        yield failure("file size", found, "unlimited, for checkpoints", "ulimit -f unlimited")
    if facts.cpu_s != UNLIMITED:
        found = f"a process is killed after {facts.cpu_s:,} s of CPU time"
        yield warning("cpu time", found, "unlimited", "ulimit -t unlimited")
    if facts.has_rdma and facts.locked != UNLIMITED and facts.locked < LOCKED:
        found = f"{facts.locked // 1024:,} KiB may be locked, and there is an InfiniBand or RoCE card"
        do = "ulimit -l unlimited, or: docker run --ulimit memlock=-1"
        yield warning("locked memory", found, "unlimited, for RDMA", do)
