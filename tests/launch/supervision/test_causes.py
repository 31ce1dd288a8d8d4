"""Causes that lie outside the program or in its end: named, and not misread."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ranks.launch.env_vars import check_loopback
from tests.launch.scripts import ERROR, sessions

MEMORY = Path("/sys/fs/cgroup/memory")
LIMIT_MIB = 400


def test_a_rank_that_ends_early_with_exit_0_is_named(start: Any) -> None:
    launcher = start(
        ERROR + "if rank == 1:\n"
        "    touch('left')\n"
        "    sys.exit(0)\n"
        "wait_for('left')\n"
        "end(RuntimeError('[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:1'))\n"
    )
    code, _, err = launcher.end()
    assert code == 1
    assert err.startswith("rank 1 ended early with exit code 0 while rank 0 still worked: ranks must end together\n")
    assert [fact["kind"] for fact in sessions(launcher)] == ["left"]


def test_one_rank_or_an_interface_that_is_up_is_fine() -> None:
    check_loopback(1)
    check_loopback(2)


def in_a_new_network() -> list[str]:
    """The start of a command line that runs a program where `lo` is down."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "--net", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs the right to make a network namespace")
    return [unshare, "--net"]


def test_ranks_are_not_started_while_the_loopback_interface_is_down(start: Any) -> None:
    launcher = start("touch('started')\n", before=in_a_new_network())
    code, _, err = launcher.end()
    assert code != 0
    assert "its loopback interface lo is down" in err
    assert not (launcher.folder / "started").exists()


@pytest.fixture
def small_cgroup() -> Iterator[Path]:
    """A memory cgroup (v1) of `LIMIT_MIB`."""
    group = MEMORY / f"ranks-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("needs the right to make a memory cgroup (v1)")
    (group / "memory.limit_in_bytes").write_text(str(LIMIT_MIB * 2**20))
    yield group
    group.rmdir()


def test_a_real_out_of_memory_kill_is_named(start: Any, small_cgroup: Path) -> None:
    enter = f"import os, sys; open('{small_cgroup}/cgroup.procs', 'w').write('0'); os.execv(sys.argv[1], sys.argv[1:])"
    launcher = start(
        "if rank == 1 and attempt == 0:\n    hog = [bytearray(2**24) for _ in range(200)]\n",
        before=[sys.executable, "-c", enter],
    )
    code, _, err = launcher.end()
    assert code == 0, err
    said = (
        f"rank 1 was ended by SIGKILL, Killed (by the kernel: the memory of this container ran out, limit {LIMIT_MIB}"
    )
    assert err.startswith(said), err
