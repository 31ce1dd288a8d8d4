"""The limits of this process's cgroups, which a container sets (Linux)."""

from __future__ import annotations

from pathlib import Path

CGROUP, ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
UNLIMITED = 2**60
"""cgroup v1 writes a number near 2**63 where memory has no limit."""


def memory_left(free: int, cgroup: Path = CGROUP, root: Path = ROOT) -> int:
    """Bytes that can be allocated now. `free`: on the machine; a cgroup may leave less."""
    for group in groups_of("memory", cgroup, root):
        limit = read_number(group, "memory.max", "memory.limit_in_bytes")
        used = read_number(group, "memory.current", "memory.usage_in_bytes")
        if limit is not None and used is not None:
            free = min(free, max(0, limit - max(0, used - _cached_files(group))))
    return free


def _cached_files(group: Path) -> int:
    """Bytes of files that the kernel keeps in memory and drops when a program needs the room. The group's use counts
    them: after reading a large data set it is near the limit."""
    try:
        rows = dict(line.split(" ", 1) for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
    except (OSError, ValueError):
        return 0
    begin = "total_" if "total_inactive_file" in rows else ""  # cgroup v1: with the groups below
    counts = [rows.get(f"{begin}{name}_file", "0") for name in ("inactive", "active")]
    return sum(int(count) for count in counts if count.isdigit())


def memory_limit(cgroup: Path = CGROUP, root: Path = ROOT) -> int | None:
    """The smallest limit of this process's cgroups in bytes; None without one."""
    limits = [read_number(group, "memory.max", "memory.limit_in_bytes") for group in groups_of("memory", cgroup, root)]
    return min((limit for limit in limits if limit is not None), default=None)


def cpu_quota(cgroup: Path = CGROUP, root: Path = ROOT) -> float | None:
    """Cores that this process's cgroups let it use, such as 0.5; None without a limit."""
    quotas = [_quota(group) for group in groups_of("cpu", cgroup, root)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(group: Path) -> float | None:
    """CPU time over time: of `cpu.max` (v2), or of two files (v1)."""
    try:
        quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        numbers = read_number(group, "cpu.cfs_quota_us"), read_number(group, "cpu.cfs_period_us")
        return None if numbers[0] is None or not numbers[1] else numbers[0] / numbers[1]
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def tasks_left(cgroup: Path = CGROUP, root: Path = ROOT) -> int | None:
    """Processes and threads that may still be started; None without a limit."""
    groups = groups_of("pids", cgroup, root)
    counts = [(read_number(group, "pids.max"), read_number(group, "pids.current")) for group in groups]
    left = [limit - used for limit, used in counts if limit is not None and used is not None]
    return max(0, min(left)) if left else None


def tasks_limit(cgroup: Path = CGROUP, root: Path = ROOT) -> int | None:
    """The smallest limit of processes and threads of this process's cgroups; None without one."""
    limits = [read_number(group, "pids.max") for group in groups_of("pids", cgroup, root)]
    return min((limit for limit in limits if limit is not None), default=None)


def group_of(controller: str, cgroup: Path = CGROUP, root: Path = ROOT) -> Path:
    """The folder of this process's cgroup for `memory`, `cpu` or `pids`: v1, else v2, else the root that a container
    sees."""
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


def groups_of(controller: str, cgroup: Path = CGROUP, root: Path = ROOT) -> list[Path]:
    """The same with the groups above it: the limit of each holds."""
    group = group_of(controller, cgroup, root)
    return [group, *(above for above in group.parents if above.is_relative_to(root))]


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
