"""CPU time and memory of each rank with all processes that it started."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from ranks.launch.telemetry.usage import RankUse


class ProcessUse:
    """Reads the process trees of the ranks. CPU use is that since the last reading."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before: dict[int, tuple[float, float]] = {}
        """Process id of a rank -> (when, CPU seconds of its tree)."""

    def read(self, pids: Mapping[int, int]) -> dict[int, RankUse]:
        """The use of each rank that runs. `pids`: rank -> process id."""
        found: dict[int, RankUse] = {}
        before, self._before = self._before, {}
        for rank, pid in pids.items():
            cpu_s = memory_bytes = 0.0
            for process in tree_of(pid):
                with suppress(psutil.Error), process.oneshot():
                    times = process.cpu_times()
                    # the time of a child that has ended is in that of its parent (0 where the system does not say)
                    ended_s = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
                    cpu_s += times.user + times.system + ended_s
                    memory_bytes += process.memory_info().rss
            if not memory_bytes:
                continue
            now_s = self._clock()
            self._before[pid] = now_s, cpu_s
            then = before.get(pid)
            percent = 100 * max(0.0, cpu_s - then[1]) / (now_s - then[0]) if then and now_s > then[0] else None
            found[rank] = RankUse(cpu_percent=percent, memory_bytes=memory_bytes)
        return found


def tree_of(pid: int) -> list[psutil.Process]:
    """A process and all its descendants; empty where it has ended.

    Linux lists the children of a process, which costs much less than to read all processes of the machine.
    """
    try:
        root = psutil.Process(pid)
        if not Path(f"/proc/{pid}/task/{pid}/children").exists():
            return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []
    found, open_pids = [root], [pid]
    while open_pids:
        for child in _children(open_pids.pop()):
            with suppress(psutil.Error):
                found.append(psutil.Process(child))
                open_pids.append(child)
    return found


def _children(pid: int) -> list[int]:
    """Of all threads of a process (Linux)."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found
