"""Start ranks by fork from a process that has imported torch, so that no rank spends two seconds on the import.

    launcher <- ready, once torch is imported -------- fork server
             -- arguments, variables, streams ------> fork server -- fork --> middle -- fork --> rank
             <- process id, or "not forked" -----------

The middle process ends at once. The kernel then makes the rank a child of the launcher (a subreaper), which waits for
it and kills it like a process that it started itself. A restart after a crash needs no new import.

The server imports torch and nothing of the user. It never initialises CUDA, which does not survive a fork. It gets the
variables that all ranks share, because OpenMP and other libraries read theirs when they are loaded. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ranks.die_with_parent import die_with

PR_SET_NAME = 15
READY_S = 120.0
"""How long the import of torch may take. Then the server is killed, and ranks are executed."""
REPLY_S = 30.0
"""How long the launcher waits for a process id."""
KILLED_S = 10.0
"""How long to wait for the killed server. One that takes longer is stuck in the kernel, and is left to it."""
DIE_WITH_PARENT = (sys.executable, "-I", "-S", str(Path(__file__).parents[2] / "die_with_parent.py"))
"""Start a command, after the process id of its parent, such that the kernel kills it when the parent dies."""
STREAMS = (1, 2, 0)
"""The descriptors of the standard streams of a rank, in the order of a request. Without the last it is /dev/null."""
READY = b"ready"
NOT_FORKED = b"not forked"
"""The answer where the system refuses another process (`ulimit -u`, `pids.max`). The server goes on."""
MESSAGE_BYTES = 1 << 20
ID_BYTES = 32


class ForkServer:
    """The launcher's side of the fork server."""

    def __init__(self, python: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int] = ()) -> None:
        """Start the server with the interpreter and flags `python`. Each rank inherits the descriptors `pass_fds`."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(REPLY_S)
        self._is_ready, self._ready_by_s = False, time.monotonic() + READY_S
        with theirs:
            self._process = subprocess.Popen(
                [
                    *DIE_WITH_PARENT,
                    str(os.getpid()),
                    *python,
                    "-m",
                    "ranks.launch.processes.forked_rank",
                    str(theirs.fileno()),
                ],
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(*pass_fds, theirs.fileno()),
                process_group=0,
            )

    def ready(self, wait_s: float) -> bool:
        """Whether `fork` would answer at once; waits `wait_s` for that. A server that has ended or takes too long is
        closed, and `fork` then raises."""
        if self._socket.fileno() < 0 or self._is_ready:
            return True
        if select.select([self._socket], [], [], wait_s)[0]:
            with contextlib.suppress(OSError):
                self._is_ready = self._socket.recv(ID_BYTES) == READY
            if not self._is_ready:
                self.close()
        elif time.monotonic() > self._ready_by_s:
            self.close()
        return self._is_ready or self._socket.fileno() < 0

    def fork(self, module: Sequence[str], env: Mapping[str, str], streams: Sequence[int]) -> ForkedProcess:
        """Start `python -m MODULE ARGUMENTS`, given as `module`. Raises OSError if the server cannot start, has died or
        cannot fork.

        `streams`: the descriptors of its standard output, its error output and, where it has one, its standard input.
        """
        while not self.ready(REPLY_S):
            pass
        request = {"module": list(module), "env": dict(env), "launcher": os.getpid()}
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], streams)
            reply = self._socket.recv(ID_BYTES)
        except OSError:
            self.close()  # a late answer would be a second process for the same rank
            raise
        if not reply:
            raise OSError("the fork server has ended")
        if reply == NOT_FORKED:
            raise OSError("the fork server cannot fork")
        return ForkedProcess(int(reply))

    def close(self) -> None:
        """End the server. The ranks are not touched."""
        self._socket.close()
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(KILLED_S)


class ForkedProcess:
    """A child process of which only the id is known. It has the methods of `subprocess.Popen` that a rank needs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, signum: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, signum)


def serve(connection: socket.socket) -> list[str] | None:
    """The server's loop: fork a rank for each request, until the launcher closes the connection.

    Returns None in the server, and in each rank the module to run with its arguments.
    """
    connection.send(READY)
    while True:
        message, fds, _, _ = socket.recv_fds(connection, MESSAGE_BYTES, len(STREAMS))
        if not message:
            return None
        request: dict[str, Any] = json.loads(message)
        reader, writer = os.pipe()
        middle = try_fork()
        if middle == 0:
            parent = os.getpid()
            rank = try_fork()
            if rank is None:
                os._exit(1)
            if not rank:
                for fd in (reader, writer, connection.detach()):
                    os.close(fd)
                become_rank(request, fds, parent)
                return list(request["module"])
            os.setpgid(rank, rank)  # before the launcher knows the id, so that it can always kill the group
            os.write(writer, str(rank).encode())
            os._exit(0)
        os.close(writer)  # else the pipe has no end where the middle process has written nothing
        if middle is not None:
            os.waitpid(middle, 0)  # from here on the rank is a child of the launcher
        connection.send(os.read(reader, ID_BYTES) or NOT_FORKED)
        for fd in (reader, *fds):
            os.close(fd)


def try_fork() -> int | None:
    """As `os.fork`; None where the system refuses another process."""
    try:
        return os.fork()
    except OSError:
        return None


def become_rank(request: Mapping[str, Any], fds: Sequence[int], middle: int) -> None:
    """Give this new process its parent, streams, variables, random state and name, once the middle one has ended."""
    while os.getppid() == middle:
        os.sched_yield()
    die_with(request["launcher"])
    for fd, number in zip(fds, STREAMS, strict=False):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(request["env"])
    seed_numpy()
    name = f"rank {os.environ['RANK']}"
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())  # shown by `top`, and read by `ranks prove`


def seed_numpy() -> None:
    """Seed numpy's global generator from the system. Forked processes would otherwise all draw the same numbers."""
    import numpy as np

    np.random.seed()
