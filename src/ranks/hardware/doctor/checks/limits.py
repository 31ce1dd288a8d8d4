"""Limits of this user and container: open files, processes, locked memory."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ranks.hardware.doctor.finding import Asked, Finding, failure, ok, warning

MIB = 2**20
FILES, FILES_OF_A_RANK = 256, 64
TASKS, TASKS_OF_A_RANK = 64, 32
LOCKED = 64 * MIB
UNLIMITED = -1


@dataclass(frozen=True)
class LimitsFacts:
    """Soft limits; -1 where there is none."""

    files: int
    files_hard: int
    tasks_left: int
    """Processes and threads that the container may still start."""
    locked: int


def measure(asked: Asked) -> LimitsFacts:
    """Ask the kernel."""
    files, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] if hasattr(resource, "RLIMIT_MEMLOCK") else UNLIMITED
    return LimitsFacts(files, hard, _tasks_left(), locked)


def _tasks_left() -> int:
    """From the pids cgroup; v1 and v2 have the same file names."""
    try:
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()]
    except (OSError, ValueError):
        return UNLIMITED
    root = Path("/sys/fs/cgroup")
    for names, path in ((parts[1], parts[2]) for parts in lines if len(parts) == 3):
        base = root / "pids" if "pids" in names.split(",") else root if names == "" else None
        for group in (base / path.lstrip("/"), base) if base is not None else ():
            try:
                most = (group / "pids.max").read_text(encoding="ascii").strip()
                now = int((group / "pids.current").read_text(encoding="ascii"))
            except (OSError, ValueError):
                continue
            return UNLIMITED if most == "max" else max(0, int(most) - now)
    return UNLIMITED


def judge(facts: LimitsFacts, asked: Asked) -> Iterator[Finding]:
    """Enough for the ranks and what they open."""
    files = FILES + FILES_OF_A_RANK * asked.ranks
    if facts.files != UNLIMITED and facts.files < files:
        raised = facts.files_hard if facts.files_hard not in (UNLIMITED,) and facts.files_hard < 65_536 else 65_536
        do = f"ulimit -n {raised}" if raised >= files else "raise the hard limit: /etc/security/limits.conf, nofile"
        yield failure("open files", f"a limit of {facts.files}", f"{files} or more", do)
    else:
        yield ok("open files", "unlimited" if facts.files == UNLIMITED else f"a limit of {facts.files:,}")
    tasks = TASKS + TASKS_OF_A_RANK * asked.ranks
    if facts.tasks_left != UNLIMITED and facts.tasks_left < tasks:
        found = f"{facts.tasks_left} more processes and threads"
        yield failure("processes", found, f"{tasks} or more", "docker run --pids-limit 4096")
    if asked.gpus and facts.locked != UNLIMITED and facts.locked < LOCKED:
        found = f"{facts.locked // 1024:,} KiB may be locked"
        yield warning("locked memory", found, "unlimited, for RDMA", "docker run --ulimit memlock=-1")
