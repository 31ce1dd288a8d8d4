"""The limit of this process's memory cgroup, which a container sets (Linux)."""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
UNLIMITED = 2**60
"""cgroup v1 writes a number near 2**63 where there is no limit."""


def within_limit(free: int, cgroup: Path = Path("/proc/self/cgroup"), root: Path = ROOT) -> int:
    """Bytes that can be allocated now. `free`: on the machine; a cgroup may leave less."""
    group = memory_group(cgroup, root)
    limit = read_bytes(group, "memory.max", "memory.limit_in_bytes")
    used = read_bytes(group, "memory.current", "memory.usage_in_bytes")
    return free if limit is None or used is None else min(free, max(0, limit - used))


def memory_group(cgroup: Path, root: Path) -> Path:
    """The folder of this process's memory cgroup: v1, else v2, else the root that a container sees."""
    try:
        text = cgroup.read_text(encoding="ascii")
    except (OSError, ValueError):
        return root
    lines = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
    for controllers, base in (("memory", root / "memory"), ("", root)):
        for _, names, path in lines:
            if controllers in names.split(","):
                group = base / path.lstrip("/")
                return group if group.is_dir() else base
    return root


def read_bytes(group: Path, *names: str) -> int | None:
    """The first of these files that holds a number of bytes below UNLIMITED."""
    for name in names:
        try:
            text = (group / name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdigit() and int(text) < UNLIMITED:
            return int(text)
    return None
