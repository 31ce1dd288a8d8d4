"""The limits of this process's cgroups, which a container sets (Linux)."""

from __future__ import annotations

from pathlib import Path

CGROUP, ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
UNLIMITED = 2**60
"""cgroup v1 writes a number near 2**63 where memory has no limit."""


def memory_left(free: int, cgroup: Path = CGROUP, root: Path = ROOT) -> int:
    """Bytes that can be allocated now. `free`: on the machine; a cgroup may leave less."""
    group = group_of("memory", cgroup, root)
    limit = read_number(group, "memory.max", "memory.limit_in_bytes")
    used = read_number(group, "memory.current", "memory.usage_in_bytes")
    return free if limit is None or used is None else min(free, max(0, limit - used))


def tasks_left(cgroup: Path = CGROUP, root: Path = ROOT) -> int | None:
    """Processes and threads that may still be started; None without a limit."""
    group = group_of("pids", cgroup, root)
    limit, used = read_number(group, "pids.max"), read_number(group, "pids.current")
    return None if limit is None or used is None else max(0, limit - used)


def group_of(controller: str, cgroup: Path = CGROUP, root: Path = ROOT) -> Path:
    """The folder of this process's cgroup for `memory` or `pids`: v1, else v2, else the root that a container sees."""
    try:
        text = cgroup.read_text(encoding="ascii")
    except (OSError, ValueError):
        return root
    lines = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
    for controllers, base in ((controller, root / controller), ("", root)):
        for _, names, path in lines:
            if controllers in names.split(","):
                group = base / path.lstrip("/")
                return group if group.is_dir() else base
    return root


def read_number(group: Path, *names: str) -> int | None:
    """The first of these files that holds a number below UNLIMITED."""
    for name in names:
        try:
            text = (group / name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdigit() and int(text) < UNLIMITED:
            return int(text)
    return None
