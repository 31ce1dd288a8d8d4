"""Whether the Linux kernel ended a process because memory ran out, from the counters of this process's cgroup.

cgroup v2 counts in memory.events, v1 in memory.oom_control, and the whole machine in /proc/vmstat.
"""

from __future__ import annotations

import re
from pathlib import Path

from ranks.engine.distributed.rendezvous.cgroup import CGROUP, ROOT, group_of, read_number

MIB = 2**20


class OomKills:
    """Counts the kills since it was made."""

    def __init__(self, cgroup: Path = CGROUP, root: Path = ROOT) -> None:
        self._group = group_of("memory", cgroup, root)
        self._before = self._counts()

    def _counts(self) -> tuple[int, int]:
        """(kills in the cgroup, kills on the machine); 0 where the kernel does not say."""
        inside = max(_counter(self._group / name) for name in ("memory.events", "memory.oom_control"))
        return inside, _counter(Path("/proc/vmstat"))

    def describe(self) -> str:
        """What the kernel did since this object was made; empty where it ended no process for want of memory."""
        inside, machine = self._counts()
        if inside > self._before[0]:
            limit = read_number(self._group, "memory.max", "memory.limit_in_bytes")
            peak = read_number(self._group, "memory.peak", "memory.max_usage_in_bytes")
            facts = [f"limit {limit // MIB:,} MiB"] if limit is not None else []
            facts += [f"peak {peak // MIB:,} MiB"] if peak is not None else []
            return ", ".join(["by the kernel: the memory of this container ran out", *facts])
        if machine > self._before[1]:
            return "by the kernel, which ended processes because the memory of this machine ran out"
        return ""


def _counter(path: Path) -> int:
    """The number after `oom_kill` in a file of counters, 0 where there is none."""
    try:
        found = re.search(r"^oom_kill (\d+)$", path.read_text(encoding="ascii"), re.MULTILINE)
    except (OSError, ValueError):
        return 0
    return int(found[1]) if found else 0
