"""The parent of a stream's worker processes: `python -m ranks.data.loading.server RANK_PID CONTROL STATUS SOCKET...`.

    rank ── data set ──► server (imports torch, loads the data set once) ── fork ──► workers
         ◄── process ids, then the exit status of each worker that ends

It is a new process with one thread, so that it can fork safely; the rank has threads. Workers share the memory of the
data set until they write to it. The kernel kills the server when the rank dies, and the workers when the server does
(PR_SET_PDEATHSIG, Linux). Elsewhere the server sees the end of its socket to the rank and kills them, and idle
workers see the end of theirs. The rank starts it with SIGINT and SIGTERM blocked: Ctrl-C signals the whole process
group, and a rank needs its workers until it has saved.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import mmap
import os
import pickle
import select
import signal
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from ranks.die_with_parent import die_with
from ranks.errors import UserError

PR_SET_NAME = 15
WORKERS = "worker processes for this data set"


@dataclass(frozen=True)
class Setup:
    """What a worker needs to be like the rank. `files`: the user's, which the data set's class may come from."""

    import_path: list[str]
    files: list[Path]
    dataset: bytes
    dtype: str
    threads: int


def main(argv: Sequence[str]) -> NoReturn:
    """Fork the workers, report those that end, and end with the rank."""
    rank, control_fd, status_fd, *sockets = map(int, argv)
    die_with(rank)
    control = Connection(control_fd)
    try:
        pids = start(control, status_fd, sockets)
        watch(control, pids)
    except (EOFError, OSError):  # the rank has ended
        pass
    os._exit(0)


def start(control: Connection, status_fd: int, sockets: Sequence[int]) -> list[int]:
    """Load the data set and fork a worker for each socket. Their process ids, which the rank gets too; where that
    fails, it gets what went wrong."""
    setup: Setup = pickle.loads(control.recv_bytes())
    sys.path[:] = setup.import_path
    import torch

    from ranks.data.loading.place import ROW
    from ranks.data.loading.tasks import Problem
    from ranks.engine.user_file import load_file

    try:
        for path in setup.files:
            load_file(path, f"the file {path} in a data worker")
        torch.set_default_dtype(getattr(torch, setup.dtype))
        torch.set_num_threads(1)  # more would not survive the fork
        dataset = DatasetUnpickler(io.BytesIO(setup.dataset)).load()
        if torch.cuda.is_initialized():  # CUDA does not survive the fork
            found = "it holds tensors on a GPU, or initialises CUDA while it is loaded"
            raise UserError(WORKERS, found, "keep its tensors on the CPU: the stream copies each batch to the device")
    except Exception as error:
        control.send(Problem.of(error, -1))
        raise EOFError from error
    gc.freeze()  # a collection in a worker then does not touch, and so copy, the memory that all of them share
    rows = memoryview(mmap.mmap(status_fd, 8 * ROW * len(sockets))).cast("q")
    pids = [
        fork(dataset, rows[i * ROW : (i + 1) * ROW], i, sockets, control.fileno(), setup.threads)
        for i in range(len(sockets))
    ]
    for descriptor in sockets:
        os.close(descriptor)
    control.send(pids)
    return pids


class DatasetUnpickler(pickle.Unpickler):
    """Raises UserError for a class of the rank's main program, which is another one than that of this process."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if module_name == "__main__":
            found = f"{global_name} is defined in the program itself, which a worker would have to run again"
            do = 'move it into a module of its own, or write kind="threads"'
            raise UserError(WORKERS, found, do)
        return super().find_class(module_name, global_name)


def fork(dataset: Any, row: memoryview, index: int, sockets: Sequence[int], control_fd: int, threads: int) -> int:
    """Start a worker. Its process id."""
    server = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # OpenBLAS has a thread, and survives a fork
        pid = os.fork()
    if pid:
        return pid
    try:
        die_with(server)
        import torch

        from ranks.data.loading.worker import work
        from ranks.engine.liveness import stacks

        for descriptor in (control_fd, *sockets):
            if descriptor != sockets[index]:
                os.close(descriptor)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_NAME, f"data worker {index}".encode())
        stacks.register()
        torch.set_num_threads(threads)
        work(dataset, row, sockets[index])
    finally:
        os._exit(1 if sys.exc_info()[0] is not None else 0)


def watch(control: Connection, pids: list[int]) -> None:
    """Report workers that end, until the rank closes its socket. Then kill the rest."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, _wake)
    signal.set_wakeup_fd(writer)
    running = dict(zip(pids, range(len(pids)), strict=True))
    try:
        while True:
            for pid in list(running):  # also those that ended before the signal was watched
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    control.send((running.pop(pid), os.waitstatus_to_exitcode(status)))
            ready, _, _ = select.select([control.fileno(), reader], [], [])
            if control.fileno() in ready:
                return
            os.read(reader, 4096)
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)
        for pid in running:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _wake(signum: int, frame: FrameType | None) -> None:
    """The wake-up descriptor is written only for signals that have a Python handler."""


if __name__ == "__main__":
    main(sys.argv[1:])
