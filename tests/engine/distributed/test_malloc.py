"""What malloc does with a freed buffer, seen in the pages that the kernel hands out again."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys

import pytest

from ranks.engine.distributed.malloc import (
    M_MMAP_THRESHOLD,
    M_TRIM_THRESHOLD,
    MOST_OF_OLD_GLIBC,
    NEVER,
    keep_freed_memory,
)

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
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_", "LD_PRE"))}
    command = [sys.executable, "-c", ROUNDS.format(mib=mib, warm_up=warm_up)]
    return int(subprocess.run(command, env=own | environ, capture_output=True, text=True, check=True).stdout)


def test_a_glibc_that_refuses_the_limit_gets_the_largest_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set alone, the other limit would freeze the one for maps at its start, and all buffers would be mapped."""
    calls: list[tuple[int, int]] = []

    class OldGlibc:
        def mallopt(self, name: int, value: int) -> int:
            accepted = not (name == M_MMAP_THRESHOLD and value > MOST_OF_OLD_GLIBC)
            if accepted:
                calls.append((name, value))
            return int(accepted)

    monkeypatch.setattr("ctypes.CDLL", lambda name: OldGlibc())
    keep_freed_memory()
    assert calls == [(M_MMAP_THRESHOLD, MOST_OF_OLD_GLIBC), (M_TRIM_THRESHOLD, NEVER)]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another malloc")
def test_a_rank_keeps_the_buffers_of_a_batch_and_gives_larger_ones_back() -> None:
    pages = 64 * 2**20 // resource.getpagesize()
    settled = 24  # small objects that stay have found other places than the freed buffer
    assert page_faults(64, settled) < 2 * pages
    assert page_faults(300, 1) > 200  # as few with huge pages
    assert page_faults(64, 1, MALLOC_MMAP_THRESHOLD_=str(2**20)) > 200, "the user's own setting holds"
