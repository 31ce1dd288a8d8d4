"""A process that does tasks for a rank.

    rank ── how to make a worker, numbers of tasks ──► this process
         ◄── results, or the error of a task

It keeps its imports and compiled kernels from one map to the next.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

from ranks.errors import UserError
from ranks.workloads.chess_value.helper_process import HelperProcess
from ranks.workloads.chess_value.rank_connection import RankConnection
from ranks.workloads.chess_value.tasks.worker import TaskWorker

T = TypeVar("T")
Request = tuple[Literal["make", "run", "close"], Any]


class TaskProcess(HelperProcess):
    """The rank's side."""

    def __init__(self, silence_s: float) -> None:
        super().__init__(__name__, "does tasks", silence_s, {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""})

    def worker(self, make_worker: Callable[[], TaskWorker[T]]) -> ProcessWorker[T]:
        """A worker that `make_worker` makes in the process."""
        self.ask(("make", make_worker))
        return ProcessWorker(self)

    def ask(self, request: Request) -> Any:
        """The answer to a request, which comes as ("done", it) or ("error", exception). Raises what the task raised,
        and as `HelperProcess.send`."""
        self.send(request)
        kind, value = self.receive()
        if kind == "error":
            raise value
        return value


class ProcessWorker(Generic[T]):
    """A TaskWorker whose tasks are done by a process. To stop them, the process is killed."""

    def __init__(self, process: TaskProcess) -> None:
        self._process = process

    def run(self, task: int, stopping: Callable[[], bool]) -> T:
        return self._process.ask(("run", task))

    def close(self) -> None:
        if self._process.is_alive:  # else its last task has said so
            self._process.ask(("close", None))


def main() -> None:
    """Do what the rank asks for, until it closes the socket."""
    connection = RankConnection(int(sys.argv[1]))
    worker: TaskWorker[Any] | None = None
    with contextlib.suppress(EOFError, OSError):  # the rank has ended
        while True:
            kind, value = connection.recv()
            result: Any = None
            try:
                if kind == "make":
                    worker = value()
                elif worker is not None:
                    result = worker.run(value, never) if kind == "run" else worker.close()
                connection.send(("done", result))
            except UserError as error:
                connection.send(("error", error))
            except Exception:
                connection.send(("error", RuntimeError(f"in a process that does tasks:\n{traceback.format_exc()}")))


def never() -> bool:
    """Whether a task stops: its process is killed instead."""
    return False


if __name__ == "__main__":
    main()
