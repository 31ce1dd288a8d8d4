"""Runs single gymnasium environments in the process of the rank or in subprocesses (workers).

A worker always ends with its rank, also if the rank is killed. A rank that must stop does not wait
for a worker that hangs.
"""

from __future__ import annotations

import atexit
import contextlib
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

from ranks.die_with_parent import die_with_parent
from ranks.engine.distributed.stop_signal import asked_to_stop
from ranks.engine.liveness import stacks
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.user_file import load_file, loaded_files
from ranks.errors import Stopped, UserError
from ranks.rl.gymnasium.single_env import AnySpace, MakeEnv, Request, SingleEnv, StepResult, env_error

POLL_S = 0.2
"""Seconds between two checks for a stop signal while the rank waits for a worker."""
GRACE_S = 5.0
"""Seconds that a worker may take after a stop signal, and to close its environment."""


class EnvPool(Protocol):
    """Single environments, numbered by row, which handle a batch of requests."""

    spaces: tuple[AnySpace, AnySpace]
    """The observation space and the action space, the same for all."""

    def call(self, requests: Mapping[int, Request]) -> dict[int, StepResult]:
        """Handle requests by row and return the results in the same order.

        Raises UserError if an environment fails, and Stopped if one hangs while a stop is
        requested.
        """
        ...

    def close(self) -> None:
        """Close all environments. No other method is called after it."""
        ...


class InProcessEnvs:
    """An EnvPool in the process of the rank (like SyncVectorEnv of gymnasium)."""

    def __init__(self, make: MakeEnv, ids: range) -> None:
        """Raises UserError if an environment cannot be made, or has other spaces than the first."""
        self.envs = [SingleEnv(make, env) for env in ids]
        self.spaces = _common_spaces([env.spaces for env in self.envs], ids)

    def call(self, requests: Mapping[int, Request]) -> dict[int, StepResult]:
        return {row: self.envs[row].handle(request) for row, request in requests.items()}

    def close(self) -> None:
        for env in self.envs:
            env.close()


class SubprocessEnvs:
    """An EnvPool with one subprocess for each environment (AsyncVectorEnv of gymnasium)."""

    def __init__(self, make: MakeEnv, ids: range) -> None:
        """Raises UserError as `InProcessEnvs` does, and if `make` must be pickled but cannot."""
        self.ids = ids
        self.processes: list[BaseProcess] = []
        self._pipes: list[Connection] = []
        self._pending: set[int] = set()
        """Rows whose result has not been received."""
        atexit.register(self.close)
        try:
            for env in ids:
                self._start(make, env)
            self._pending = set(range(len(ids)))
            self.spaces = _common_spaces([self._receive(row) for row in range(len(ids))], ids)
        except BaseException:
            self.close()
            raise

    def _start(self, make: MakeEnv, env_id: int) -> None:
        context: Any = multiprocessing.get_context(_start_method())
        worker_make = make if context.get_start_method() == "fork" else _picklable(make, env_id)
        rank_end, worker_end = context.Pipe()
        process = context.Process(target=_work, args=(worker_make, env_id, worker_end), daemon=True)
        process.start()
        worker_end.close()  # so that the pipe closes when the worker ends
        self.processes.append(process)
        self._pipes.append(rank_end)

    def call(self, requests: Mapping[int, Request]) -> dict[int, StepResult]:
        for row, request in requests.items():
            self._pending.add(row)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # _receive reports a worker that ended
                self._pipes[row].send(request)
        return {row: self._receive(row) for row in requests}

    def _receive(self, row: int) -> Any:
        """Wait for a worker's result; after a stop signal only for GRACE_S."""
        if not self._pipes[row].poll(POLL_S):
            with heartbeat.waits_for_worker(self.processes[row].pid or 0, self.ids[row]):
                self._wait_longer(row)
        try:
            result = self._pipes[row].recv()
        except (EOFError, ConnectionResetError):
            raise self._exit_error(row) from None
        self._pending.discard(row)
        if isinstance(result, UserError):
            raise result
        return result

    def _wait_longer(self, row: int) -> None:
        """Wait for a worker that is slow or hangs. Raises Stopped after a stop signal and GRACE_S."""
        give_up_s = float("inf")
        while not self._pipes[row].poll(POLL_S):
            signum, now_s = asked_to_stop(), time.monotonic()
            if signum:
                give_up_s = min(give_up_s, now_s + GRACE_S)
            if now_s > give_up_s:
                raise Stopped(signum)

    def _exit_error(self, row: int) -> UserError:
        process = self.processes[row]
        process.join(GRACE_S)
        code = process.exitcode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        do = "look at its output and at the memory in use; without workers the error appears in the rank"
        return UserError(f"environment {self.ids[row]}", f"its process {process.pid} ended {how}", do)

    def close(self) -> None:
        """Let idle workers close their environments and exit; kill busy and slow ones."""
        atexit.unregister(self.close)
        for row, pipe in enumerate(self._pipes):
            if row not in self._pending:
                with contextlib.suppress(OSError):
                    pipe.send(None)
        deadline_s = time.monotonic() + GRACE_S
        for row, process in enumerate(self.processes):
            if row not in self._pending:
                process.join(max(0.0, deadline_s - time.monotonic()))
            process.kill()
            process.join()
        for pipe in self._pipes:
            pipe.close()


def _common_spaces(spaces: list[tuple[AnySpace, AnySpace]], ids: range) -> tuple[AnySpace, AnySpace]:
    """The spaces that all environments have. Raises UserError if one has others."""
    for env, found in zip(ids, spaces, strict=True):
        if found != spaces[0]:
            asked = f"the same spaces in environment {env} and environment {ids[0]}"
            raise UserError(asked, f"spaces {found}, not {spaces[0]}", "make environments that have the same spaces")
    return spaces[0]


# How a worker starts --------------------------------------------------------------------------------------------------


def _start_method() -> str | None:
    """The start method that the program has set; else fork on Linux; else Python's default."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen or ("fork" if sys.platform == "linux" else None)


def _picklable(make: MakeEnv, env_id: int) -> MakeEnv:
    """`make` in a form for a process without shared memory: it loads the user's files first."""
    try:
        return partial(_load_and_make, loaded_files(), cloudpickle.dumps(make))
    except Exception as error:
        raise env_error(f"to pickle the function that makes environment {env_id} for a worker", error) from error


def _load_and_make(files: list[Path], pickled_make: bytes) -> Any:
    for path in files:
        load_file(path, f"the file {path} in a worker")
    return cloudpickle.loads(pickled_make)()


# Inside a worker ------------------------------------------------------------------------------------------------------


def _work(make: MakeEnv, env_id: int, pipe: Connection) -> None:
    """Handle requests until None arrives or the rank ends.

    A worker ignores SIGINT and SIGTERM: Ctrl-C and Slurm signal whole process groups, and a rank
    needs its environments until it has saved.
    """
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, signal.SIG_IGN)
    stacks.register()  # a forked worker has registered as its rank did
    _end_with_rank()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            env = SingleEnv(make, env_id)
        except UserError as error:
            pipe.send(error)
            return
        pipe.send(env.spaces)
        while (request := pipe.recv()) is not None:
            pipe.send(_result_or_error(partial(env.handle, request)))
        try:
            env.close()
        except UserError as error:
            print(error, file=sys.stderr)


def _result_or_error(handle: Callable[[], StepResult]) -> StepResult | UserError:
    try:
        return handle()
    except UserError as error:
        return error


def _end_with_rank() -> None:
    """End this worker when the rank ends, also while the environment hangs.

    A thread waits for the rank. On Linux the kernel kills the worker too, even if Python's lock is
    held. (With a fork server the kernel waits for that process, which the workers keep alive.)
    """
    threading.Thread(target=_wait_and_end, daemon=True).start()
    die_with_parent()


def _wait_and_end() -> None:
    rank = multiprocessing.parent_process()
    assert rank is not None
    rank.join()
    os._exit(1)
