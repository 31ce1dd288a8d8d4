"""`subprocess.Popen` for a test process: commands of `ranks` are forked, others are executed."""

from __future__ import annotations

import atexit
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from ranks.launch.processes.orphan_reaper import subreaper
from tests.forked.command import CODE, RanksCommand, ranks_command

ROOT = Path(__file__).parents[2]
SERVER = "import sys; sys.path[0] = sys.argv[1]; from tests.forked.server import main; main()"
EXECUTING = subprocess.Popen
FORKED_CODE = (sys.executable, "-m", CODE)
"""Like `python -c`, for code that imports torch where that is not what the test is about."""
VARIABLES = dict(os.environ)
"""Of the server: those before the first test."""
GRACE_S = 20
"""How long a server may take to end."""
ROOM_BYTES = 1 << 15
"""Room for the variables of a command, where /proc shows those of the server."""


class ForkServer:
    """The server of this test process. It ends when this process does."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = EXECUTING(
                [sys.executable, "-c", SERVER, str(ROOT), str(theirs.fileno())],
                env={**VARIABLES, "ROOM": "-" * ROOM_BYTES},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd="/",
            )
        assert self._socket.recv(32) == b"ready"
        atexit.register(self.close)

    def fork(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """Start a command as a child of this process; its id."""
        with self._lock, subreaper():
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
            reply = self._socket.recv(32)
        assert reply, "the fork server has ended"
        assert reply != b"none", "the forked command ended before it had its folder and descriptors: see above"
        return int(reply)

    def close(self) -> None:
        self._socket.close()
        try:
            self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:  # a process that a test left behind holds the socket
            self._process.kill()
            self._process.wait()


server = cache(ForkServer)


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen`, which forks what `ranks_command` recognises, and kills what a failed `with` block leaves."""

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *error)

    def _execute_child(self, *arguments: Any) -> None:
        signature = inspect.signature(EXECUTING._execute_child)  # type: ignore[attr-defined]
        given = signature.bind(self, *arguments).arguments
        env = dict(os.environ if given["env"] is None else given["env"])
        command = ranks_command(given["args"], env) if given["preexec_fn"] is None else None
        if command is None:
            super()._execute_child(*arguments)  # type: ignore[misc]
            return
        try:
            self.pid = self._fork(command, env, given)
            self._child_created = True
        finally:
            pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
            self._close_pipe_fds(*(given[name] for name in pipes))  # type: ignore[attr-defined]

    def _fork(self, command: RanksCommand, env: dict[str, str], given: Mapping[str, Any]) -> int:
        streams = [given[name] if given[name] >= 0 else n for n, name in enumerate(("p2cread", "c2pwrite", "errwrite"))]
        request = {
            "command": asdict(command),
            "env": env,
            "cwd": os.fspath(given["cwd"] or os.getcwd()),
            "descriptors": [0, 1, 2, *given["pass_fds"]],
            "start_new_session": given["start_new_session"],
            "process_group": given["process_group"],
            "cores": sorted(os.sched_getaffinity(0)),
        }
        return server().fork(request, [*streams, *given["pass_fds"]])
