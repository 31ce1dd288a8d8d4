"""The rank's side of worker processes: starts them, gives them tasks, receives batches, ends them."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from ranks.data.dataset import Dataset
from ranks.data.loading.blocks import RankBlocks
from ranks.data.loading.place import ROW, RowField
from ranks.data.loading.server import Setup
from ranks.data.loading.tasks import (
    Activity,
    DataWorkerError,
    DataWorkerLost,
    Failed,
    Problem,
    Task,
    next_worker,
    where,
)
from ranks.data.loading.worker import Gathered, Order
from ranks.engine.liveness.process_state import is_stopped
from ranks.engine.user_file import loaded_files
from ranks.errors import SYSTEM_LIMITS, UserError

PACKAGE_FOLDER = str(Path(__file__).parents[3])
"""The folder that holds `ranks`."""
ENDED_S = 10.0
"""How long to wait for what the server knows about a worker that ended, and for the server's own end."""
MOST_SENT, MOST_SENT_BYTES = 64, 1 << 16
"""Tasks without an answer that a worker has, and their ids: so many fit into the buffers of its socket, and so do
their answers. If the rank sent more, both could wait for each other."""


class ProcessWorkers:
    """Worker processes that read one data set."""

    def __init__(self, dataset: Dataset[Any], num_workers: int, *, threads: int, purpose: str) -> None:
        """Start them; they load the data set while the rank continues. `threads`: of torch, in each. `purpose`: of
        the stream, for errors. Raises UserError where the data set cannot be pickled."""
        self.dataset, self.purpose = dataset, purpose
        setup = Setup(
            [entry or os.getcwd() for entry in sys.path],
            loaded_files(),
            pickled(dataset, purpose),
            str(torch.get_default_dtype()).removeprefix("torch."),
            threads,
        )
        self._control, control_end = _socket_pair()
        pairs = [_socket_pair() for _ in range(num_workers)]
        self._pipes = [pair[0] for pair in pairs]
        self._memory = mmap_of(8 * ROW * num_workers)
        self._rows = memoryview(self._memory[1]).cast("q")
        given = [control_end, *(pair[1] for pair in pairs)]
        server = _start_server([given[0].fileno(), self._memory[0], *(pipe.fileno() for pipe in given[1:])])
        os.close(self._memory[0])
        for pipe in given:
            pipe.close()
        self._blocks = [RankBlocks() for _ in pairs]
        self.pids = [0] * num_workers
        """Of the workers, 0 until they are started."""
        self._tasks: list[dict[int, Task]] = [{} for _ in pairs]
        """Without an answer, by worker."""
        self._unsent: list[deque[Task]] = [deque() for _ in pairs]
        """Those of them that the worker does not have yet."""
        self._ended: dict[int, Exception] = {}
        """Workers that have ended, and what to raise for their tasks."""
        self._server_runs = True
        self._selector = selectors.DefaultSelector()
        for worker, pipe in enumerate(self._pipes):
            self._selector.register(pipe, selectors.EVENT_READ, worker)
        self._selector.register(self._control, selectors.EVENT_READ, None)
        self._started = threading.Event()
        pipes = [self._control, *self._pipes]
        self.close = weakref.finalize(self, _close, server, self._started, self._selector, pipes)
        with contextlib.suppress(OSError):  # a server that has ended says why in `receive`
            self._control.send_bytes(pickle.dumps(setup))

    @property
    def starting(self) -> bool:
        return not all(self.pids)

    def submit(self, task: Task) -> None:
        alive = [w for w in range(len(self._tasks)) if w not in self._ended] or [0]
        worker = next_worker(task.number, {w: len(self._tasks[w]) for w in alive})
        self._tasks[worker][task.number] = task
        self._unsent[worker].append(task)
        self._send(worker)

    def _send(self, worker: int) -> None:
        """Give a worker as many of its tasks as it may have."""
        unsent = self._unsent[worker]
        sent = len(self._tasks[worker]) - len(unsent)
        sent_bytes = sum(task.ids.nbytes for task in islice(self._tasks[worker].values(), sent))
        while unsent and (not sent or (sent < MOST_SENT and sent_bytes + unsent[0].ids.nbytes <= MOST_SENT_BYTES)):
            task = unsent.popleft()
            sent, sent_bytes = sent + 1, sent_bytes + task.ids.nbytes
            order = Order(task.number, task.ids.numpy(), task.key, self._blocks[worker].take_released())
            with contextlib.suppress(OSError):  # `receive` reports a worker that ended
                self._pipes[worker].send_bytes(pickle.dumps(order, pickle.HIGHEST_PROTOCOL))

    def activity(self, number: int) -> Activity:
        worker = next(w for w, tasks in enumerate(self._tasks) if number in tasks)
        items, item = (self._rows[worker * ROW + field] for field in (RowField.ITEMS, RowField.ITEM))
        if not items:  # it has begun nothing: the first item of its first task is the one to name
            item = next(int(task.ids[0]) for task in self._tasks[worker].values())
        return Activity(self._name(worker), self.pids[worker], items, item)

    def receive(self, wait_s: float) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for worker in self._ended:
            found |= self._fail_all(worker)
        for ready, _ in self._selector.select(0.0 if found else wait_s):
            found |= self._hear_server() if ready.data is None else self._receive(ready.data)
        for worker in range(len(self._tasks)):
            self._send(worker)
        return found

    def _receive(self, worker: int) -> dict[int, Any]:
        """What this worker has finished."""
        found: dict[int, Any] = {}
        pipe = self._pipes[worker]
        try:
            while pipe.poll():
                gathered: Gathered = pickle.loads(pipe.recv_bytes())
                number, outcome = gathered.number, gathered.outcome
                if isinstance(outcome, Problem):
                    at = where(self._name(worker), self.dataset, outcome.item, self.purpose)
                    batch: Any = Failed(outcome.as_error(at))
                else:
                    batch = self._blocks[worker].read(outcome, lambda: _receive_descriptor(pipe))
                if self._tasks[worker].pop(number, None) is not None:  # else the server has ended, and the task failed
                    found[number] = batch
        except (EOFError, OSError):
            self._selector.unregister(pipe)
            self._end(worker, None)
            found |= self._hear_server(ENDED_S)
            found |= self._fail_all(worker)
        return found

    def _hear_server(self, wait_s: float = 0.0) -> dict[int, Any]:
        """Read what the server has to say; the tasks that fail by it."""
        found: dict[int, Any] = {}
        while self._server_runs and self._control.poll(wait_s):
            try:
                said: Any = self._control.recv()
            except (EOFError, OSError):
                said = None
            if isinstance(said, list):
                self.pids = said
                self._started.set()
                continue
            if isinstance(said, tuple):
                self._end(*said)
                wait_s = 0.0
                continue
            self._server_runs = False
            self._selector.unregister(self._control)
            for worker in range(len(self._tasks)):
                self._end(worker, None)
                if isinstance(said, Problem):
                    self._ended[worker] = said.as_error(f"the {self.purpose} data set cannot be loaded in a worker")
                found |= self._fail_all(worker)
        return found

    def _end(self, worker: int, code: int | None) -> None:
        """A worker has ended. Its error names the item that it was at."""
        how = "it ended" if code is None else f"it ended with exit code {code}"
        if code is not None and code < 0:
            how = f"it was killed by {signal.Signals(-code).name}"
            how += "; look at the memory of the machine" if code == -signal.SIGKILL else ""
        first = next(iter(self._tasks[worker]), None)
        if worker not in self._ended or code is not None:
            at = self._name(worker)
            if first is not None:
                at = where(at, self.dataset, self.activity(first).item, self.purpose)
            lost = DataWorkerError if code is not None and code >= 0 else DataWorkerLost
            self._ended[worker] = lost(f"lost {at}: {how}")

    def _fail_all(self, worker: int) -> dict[int, Any]:
        """The tasks of a worker that has ended."""
        tasks, self._tasks[worker] = self._tasks[worker], {}
        self._unsent[worker].clear()
        return {number: Failed(self._ended[worker]) for number in tasks}

    def _name(self, worker: int) -> str:
        return f"data worker {worker} (process {self.pids[worker]})"


def pickled(dataset: Dataset[Any], purpose: str) -> bytes:
    """The data set for another process. Raises UserError where that is not possible."""
    asked = f"workers for the {purpose} data set"
    try:
        return pickle.dumps(dataset, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # whatever its attributes make pickle raise
        found = f"it cannot be sent to another process: {type(error).__name__}: {error}"
        do = 'let it open files and devices in gather, and keep its tensors on the CPU, or write kind="threads"'
        raise UserError(asked, found, do) from error


def mmap_of(size: int) -> tuple[int, mmap.mmap]:
    """The descriptor of new shared memory without a name, and the memory."""
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        return os.dup(file.fileno()), mmap.mmap(file.fileno(), size)


def _socket_pair() -> tuple[Connection, Connection]:
    ours, theirs = socket.socketpair()
    return Connection(ours.detach()), Connection(theirs.detach())


def _start_server(descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start the server with SIGINT and SIGTERM blocked, which its workers inherit."""
    command = [sys.executable, "-P", "-m", "ranks.data.loading.server", str(os.getpid()), *map(str, descriptors)]
    path = os.pathsep.join(filter(None, [PACKAGE_FOLDER, os.environ.get("PYTHONPATH")]))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=descriptors, env={**os.environ, "PYTHONPATH": path}
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _receive_descriptor(pipe: Connection) -> int:
    """Raises EOFError where the worker has ended, UserError where this process may open no more files."""
    with socket.socket(fileno=pipe.fileno()) as raw:
        try:
            content, descriptors, _, _ = socket.recv_fds(raw, 1, 1)
        finally:
            raw.detach()
    if not content:
        raise EOFError
    if not descriptors:
        raise UserError("a batch of a data worker", os.strerror(errno.EMFILE), SYSTEM_LIMITS[errno.EMFILE])
    return descriptors[0]


def _close(
    server: subprocess.Popen[bytes],
    started: threading.Event,
    selector: selectors.BaseSelector,
    pipes: Sequence[Connection],
) -> None:
    """Close the sockets: the server then kills the workers and ends."""
    selector.close()
    for pipe in pipes:
        pipe.close()
    if not started.is_set() or is_stopped(server.pid):  # it may still import torch; its workers end with it
        server.kill()
    try:
        server.wait(ENDED_S)
    except subprocess.TimeoutExpired:  # a worker does not end, because it waits inside the kernel
        server.kill()
        server.wait()
