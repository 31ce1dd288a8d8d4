"""Workers for tests of tasks. A process that does tasks imports this module, so it imports neither torch nor pytest."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from ranks.errors import UserError


class Squares:
    """Its results: the squares of the tasks' numbers."""

    def run(self, task: int, stopping: Callable[[], bool]) -> int:
        return task * task

    def close(self) -> None:
        pass


class Pids(Squares):
    """Its results: the process that did the task."""

    def run(self, task: int, stopping: Callable[[], bool]) -> int:
        return os.getpid()


class Unlucky(Squares):
    """Fails in task 3."""

    def run(self, task: int, stopping: Callable[[], bool]) -> int:
        if task == 3:
            raise UserError("game 3", "no king", "add one")
        return task


class Broken(Squares):
    """Has a mistake in its code."""

    def run(self, task: int, stopping: Callable[[], bool]) -> int:
        return 1 // (task - task)


class Dying(Squares):
    """Its process is killed."""

    def run(self, task: int, stopping: Callable[[], bool]) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return task


class Slow(Squares):
    """Takes longer than the hang timeout of its test."""

    def run(self, task: int, stopping: Callable[[], bool]) -> int:
        time.sleep(3)
        return super().run(task, stopping)


class Endless(Squares):
    """Never ends by itself."""

    def run(self, task: int, stopping: Callable[[], bool]) -> int:
        Path(os.environ["RANKS_TEST_PID"]).write_text(str(os.getpid()))
        time.sleep(3600)
        return task
