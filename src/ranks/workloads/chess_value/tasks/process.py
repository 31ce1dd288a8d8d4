"""A process that does tasks for a rank: `python -m ranks.workloads.chess_value.tasks.process SOCKET`.

    rank ── how to make a worker, numbers of tasks ──► this process
         ◄── results, or the error of a task

The kernel kills it when the rank dies. It keeps its imports and compiled kernels from one map to the next.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Generic, Literal, TypeVar

from ranks.die_with_parent import dying_with_this_process
from ranks.errors import UserError
from ranks.workloads.chess_value.tasks.worker import Interrupted, TaskWorker

T = TypeVar("T")
POLL_S = 0.1
"""Between two looks at whether the run stops."""
Request = tuple[Literal["make", "run", "close"], Any]
Answer = tuple[Literal["done", "error"], Any]


class TaskProcess:
    """The rank's side. The thread that makes it outlives it; any one thread at a time uses it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            argv = [sys.executable, "-P", "-m", __name__, str(theirs.fileno())]
            self._process = subprocess.Popen(
                dying_with_this_process(argv),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
                process_group=0,  # no Ctrl-C from our terminal: a rank saves before it ends
            )
        self._connection = Connection(ours.detach())

    def worker(self, make_worker: Callable[[], TaskWorker[T]]) -> ProcessWorker[T]:
        """A worker that `make_worker` makes in the process."""
        self.ask(("make", make_worker), lambda: False)
        return ProcessWorker(self)

    def ask(self, request: Request, stopping: Callable[[], bool]) -> Any:
        """The answer to a request. Raises Interrupted soon after `stopping()`, and what the task raised; a RuntimeError
        where the process has ended."""
        try:
            self._connection.send(request)
            while not self._connection.poll(POLL_S):
                if stopping():
                    self.end()
                    raise Interrupted
            answer: Answer = self._connection.recv()
        except (EOFError, OSError):
            code = self._process.wait()
            raise RuntimeError(
                f"a process that plays games ended with exit code {code} (-9: killed, perhaps out of memory)"
            ) from None
        kind, value = answer
        if kind == "error":
            raise value
        return value

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """Kill the process. What it started, such as engines, dies with it."""
        self._process.kill()
        self._process.wait()
        self._connection.close()


class ProcessWorker(Generic[T]):
    """A TaskWorker whose tasks are done by a process."""

    def __init__(self, process: TaskProcess) -> None:
        self._process = process

    def run(self, task: int, stopping: Callable[[], bool]) -> T:
        return self._process.ask(("run", task), stopping)

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended, which its last task has said
            self._process.ask(("close", None), lambda: False)


def main() -> None:
    """Do what the rank asks for, until it closes the socket."""
    connection: Connection[Answer, Request] = Connection(int(sys.argv[1]))
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
                connection.send(("error", RuntimeError(f"in a process that plays games:\n{traceback.format_exc()}")))


def never() -> bool:
    """A process is killed to stop it."""
    return False


if __name__ == "__main__":
    main()
