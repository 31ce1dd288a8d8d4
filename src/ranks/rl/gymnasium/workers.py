"""Single environments side by side: in the rank, or each in a process of its own.

A worker ends with its rank, however either of them ends, and a rank that is asked to stop does not wait for a worker
that hangs.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

import cloudpickle

from ranks.engine.distributed.stop_signal import asked_to_stop
from ranks.engine.user_file import load_file, loaded_files
from ranks.errors import Stopped, UserError
from ranks.rl.gymnasium.single_environment import AnySpace, MakeOne, Request, Seen, SingleEnvironment, failure

SLICE_S = 0.2
"""Between two looks whether the rank was asked to stop."""
PATIENCE_S = 5.0
"""How long a worker may take after that, and to close its environment."""
SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""


class SingleEnvironments(Protocol):
    """Environments, one row each, which get their requests at once."""

    spaces: tuple[AnySpace, AnySpace]
    """Of the observations and actions of each."""

    def ask(self, requests: Mapping[int, Request]) -> dict[int, Seen]:
        """By row, in the order of the requests. Raises UserError where an environment fails, and Stopped."""
        ...

    def close(self) -> None:
        """Close all; nothing may be asked after it."""
        ...


class InRank:
    """Single environments in this process."""

    def __init__(self, make: MakeOne, ids: range) -> None:
        """Raises UserError where one cannot be made."""
        self.singles = [SingleEnvironment(make, env) for env in ids]
        self.spaces = _alike([single.spaces for single in self.singles], ids)

    def ask(self, requests: Mapping[int, Request]) -> dict[int, Seen]:
        return {row: self.singles[row].answer(request) for row, request in requests.items()}

    def close(self) -> None:
        for single in self.singles:
            single.close()


class InWorkers:
    """Single environments in processes of their own."""

    def __init__(self, make: MakeOne, ids: range) -> None:
        """Raises UserError where one cannot be made, or `make` cannot be sent to a process."""
        self.ids = ids
        self.processes: list[BaseProcess] = []
        self._pipes: list[Connection] = []
        self._owing: set[int] = set()
        """Rows whose answer has not come yet."""
        atexit.register(self.close)
        try:
            for env in ids:
                self._begin(make, env)
            self._owing = set(range(len(ids)))
            self.spaces = _alike([self._answer(row) for row in range(len(ids))], ids)
        except BaseException:
            self.close()
            raise

    def _begin(self, make: MakeOne, env_id: int) -> None:
        context: Any = multiprocessing.get_context(_start_method())
        make_there = make if context.get_start_method() == "fork" else _sent(make, env_id)
        mine, theirs = context.Pipe()
        process = context.Process(target=_work, args=(make_there, env_id, theirs), daemon=True)
        process.start()
        theirs.close()  # so that its end is the end of the pipe
        self.processes.append(process)
        self._pipes.append(mine)

    def ask(self, requests: Mapping[int, Request]) -> dict[int, Seen]:
        for row, request in requests.items():
            self._owing.add(row)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has ended: no answer will say so
                self._pipes[row].send(request)
        return {row: self._answer(row) for row in requests}

    def _answer(self, row: int) -> Any:
        give_up_s = float("inf")
        while not self._pipes[row].poll(SLICE_S):
            signum, now_s = asked_to_stop(), time.monotonic()
            if signum:
                give_up_s = min(give_up_s, now_s + PATIENCE_S)
            if now_s > give_up_s:
                raise Stopped(signum)
        try:
            answer = self._pipes[row].recv()
        except (EOFError, ConnectionResetError):
            raise self._ended(row) from None
        self._owing.discard(row)
        if isinstance(answer, UserError):
            raise answer
        return answer

    def _ended(self, row: int) -> UserError:
        process = self.processes[row]
        process.join(PATIENCE_S)
        code = process.exitcode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        do = "look for what it printed, and for memory that ran out; without workers it fails in the rank, in sight"
        return UserError(f"environment {self.ids[row]}", f"its process {process.pid} ended {how}", do)

    def close(self) -> None:
        """A worker that waits closes its environment and ends; one that does not, or owes an answer, is killed."""
        atexit.unregister(self.close)
        for row, pipe in enumerate(self._pipes):
            if row not in self._owing:
                with contextlib.suppress(OSError):
                    pipe.send(None)
        deadline_s = time.monotonic() + PATIENCE_S
        for row, process in enumerate(self.processes):
            if row not in self._owing:
                process.join(max(0.0, deadline_s - time.monotonic()))
            process.kill()
            process.join()
        for pipe in self._pipes:
            pipe.close()


def _alike(spaces: list[tuple[AnySpace, AnySpace]], ids: range) -> tuple[AnySpace, AnySpace]:
    for env, found in zip(ids, spaces, strict=True):
        if found != spaces[0]:
            asked = f"environment {env} beside environment {ids[0]}"
            raise UserError(asked, f"spaces {found}, not {spaces[0]}", "make environments that have the same spaces")
    return spaces[0]


# How a worker begins --------------------------------------------------------------------------------------------------


def _start_method() -> str | None:
    """What the program has chosen; else fork on Linux, which is quick and needs nothing sent; else Python's own."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen or ("fork" if sys.platform == "linux" else None)


def _sent(make: MakeOne, env_id: int) -> MakeOne:
    """`make` for a process that knows nothing of this one: it loads the user's files first."""
    try:
        return partial(_load_and_make, loaded_files(), cloudpickle.dumps(make))
    except Exception as error:
        raise failure(f"to send what makes environment {env_id} to a process of its own", error) from error


def _load_and_make(files: list[Path], pickled_make: bytes) -> Any:
    for path in files:
        load_file(path, f"the file {path} in a worker")
    return cloudpickle.loads(pickled_make)()


# Inside of a worker ---------------------------------------------------------------------------------------------------


def _work(make: MakeOne, env_id: int, pipe: Connection) -> None:
    """Carry out one request after the other, until None or the rank's end. Signals are left to the rank: Ctrl-C and
    Slurm signal whole groups of processes, and a rank needs its environments until it has saved."""
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, signal.SIG_IGN)
    _end_with_rank()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            single = SingleEnvironment(make, env_id)
        except UserError as error:
            pipe.send(error)
            return
        pipe.send(single.spaces)
        while (request := pipe.recv()) is not None:
            pipe.send(_answered(partial(single.answer, request)))
        try:
            single.close()
        except UserError as error:
            print(error, file=sys.stderr)


def _answered(answer: Callable[[], Seen]) -> Seen | UserError:
    try:
        return answer()
    except UserError as error:
        return error


def _end_with_rank() -> None:
    """Also where the rank is killed while the environment hangs: a thread waits for the rank's end; on Linux the kernel
    does too, which no hang can hold up. (With a fork server it waits for that one, which the workers keep alive.)"""
    threading.Thread(target=_wait_and_end, daemon=True).start()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _wait_and_end() -> None:
    rank = multiprocessing.parent_process()
    assert rank is not None
    rank.join()
    os._exit(1)
