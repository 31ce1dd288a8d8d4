"""What malloc does with a freed buffer, seen in the pages that the kernel hands out again."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys

import pytest

from ranks.engine.distributed.malloc import (
    LARGEST_KEPT,
    M_MMAP_THRESHOLD,
    M_TRIM_THRESHOLD,
    NEVER,
    SWITCHES,
    keep_freed_memory,
)

on_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another malloc")

ROUNDS = """
import resource
import torch
from ranks import RunConfig, World
World.join(RunConfig(), device="cpu", workload="toy")
def use():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty({mib} * 2**18, dtype=torch.float32).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
for _ in range({warm_up}):
    use()
print(sum(use() for _ in range(8)))
"""


def page_faults(mib: int, warm_up: int, **environ: str) -> int:
    """Page faults of eight rounds in which a rank asks for a buffer, writes and frees it, after others to warm up."""
    return printed(ROUNDS.format(mib=mib, warm_up=warm_up), **environ)


def printed(code: str, **environ: str) -> int:
    """What a process of its own prints, whose malloc has no settings but those in `environ`."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_", "LD_PRE"))}
    command = [sys.executable, "-c", code]
    return int(subprocess.run(command, env=own | environ, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("accepts", [True, False])
def test_both_limits_are_set_or_none(accepts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set alone, the second would freeze the first at its start, and all buffers would be mapped."""
    calls: list[tuple[int, int]] = []

    class Glibc:
        def mallopt(self, name: int, value: int) -> int:
            calls.append((name, value))
            return int(accepts)

    monkeypatch.setattr("ctypes.CDLL", lambda name: Glibc())
    for name in SWITCHES:
        monkeypatch.delenv(name, raising=False)
    keep_freed_memory()
    assert calls == [(M_MMAP_THRESHOLD, LARGEST_KEPT), (M_TRIM_THRESHOLD, NEVER)][: 2 if accepts else 1]


FEATURES = """
import torch
from ranks import RunConfig, World
World.join(RunConfig(), device="cpu", workload="toy")
def heap_mib():
    lines = open("/proc/self/status").read().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmData")) >> 10
kept, before = [], heap_mib()
for number in range(300):
    clips = torch.empty(142 * 2**18)
    change = torch.empty(134 * 2**18)
    del clips
    kept.append(torch.empty(256 * 34))
    squares = torch.empty((134 + number % 7) * 2**18)
    kept.append(torch.empty(256 * 17))
    del change, squares
print(heap_mib() - before)
"""


@on_glibc
def test_small_results_between_large_buffers_do_not_let_the_heap_grow() -> None:
    """It grew to 22 GB in some 600 passes over a data set, and the kernel ended the process."""
    assert printed(FEATURES) < 300


@on_glibc
def test_a_rank_keeps_the_buffers_of_a_batch_and_gives_larger_ones_back() -> None:
    pages = 24 * 2**20 // resource.getpagesize()
    settled = 24  # small objects that stay have found other places than the freed buffer
    assert page_faults(24, settled) < 2 * pages
    assert page_faults(64, 1) > 200  # as few with huge pages
    assert page_faults(24, 1, MALLOC_MMAP_THRESHOLD_=str(2**20)) > 200, "the user's own setting holds"
