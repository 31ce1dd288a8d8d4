"""A rank's process, where the kernel does not let it end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from ranks.launch.processes.process import RankProcess


class StuckProcess(subprocess.Popen[bytes]):
    """A process that never seems to end, as one that waits in the kernel for a dead disk."""

    stuck = True

    def poll(self) -> int | None:
        return None if self.stuck else super().poll()


@pytest.mark.parametrize("stuck", [True, False])
def test_the_end_of_a_process_that_is_stuck_in_the_kernel_is_not_awaited_for_ever(stuck: bool, tmp_path: Path) -> None:
    started: list[StuckProcess] = []

    def start(env: Mapping[str, str], stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
        started.append(StuckProcess(command, env=dict(env), stdout=stdout, stderr=stderr, process_group=0))
        return started[0]

    rank = RankProcess(1, start, {}, error_file=tmp_path / "error", log=tmp_path / "log", show=None)
    started[0].stuck = stuck
    ended = rank.end(reported="", deadline_s=time.monotonic() + (0 if stuck else 600))
    assert ended is not stuck
    assert rank.code == -signal.SIGKILL
    started[0].stuck = False
    assert started[0].wait() == -signal.SIGKILL
