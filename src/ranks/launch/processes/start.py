"""How a rank's process is started: by fork from a process that has imported torch, or by executing its command."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from ranks.launch.processes.fork_server import DIE_WITH_PARENT, ForkedProcess, ForkServer

Start = Callable[[Mapping[str, str], int, int], "ForkedProcess | subprocess.Popen[bytes]"]
"""(variables, stdout, stderr) -> a new process, the leader of its own process group. Raises OSError."""


class Starter:
    """Starts `argv` when called: forks a command `python -m MODULE ...` (Linux), and executes others.

    Where the fork server fails, every command is executed.
    """

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int], stdin: int | None = None
    ) -> None:
        """`env`: the variables that all ranks share. `pass_fds`: descriptors that each rank inherits. `stdin`: the
        standard input of each rank, /dev/null without one."""
        self._argv, self._pass_fds, self._stdin = argv, pass_fds, stdin
        python, self._module = split_module_command(argv)
        forks = bool(self._module) and sys.platform == "linux"
        self._server = ForkServer(python, env, pass_fds) if forks else None

    def ready(self, wait_s: float) -> bool:
        """Whether a rank can be started at once; waits `wait_s` for that."""
        return self._server is None or self._server.ready(wait_s)

    def __call__(self, env: Mapping[str, str], stdout: int, stderr: int) -> ForkedProcess | subprocess.Popen[bytes]:
        if self._server is not None:
            with contextlib.suppress(OSError):  # where the server could not import torch, the rank says why
                streams = [stdout, stderr] if self._stdin is None else [stdout, stderr, self._stdin]
                return self._server.fork(self._module, env, streams)
        return subprocess.Popen(
            [*DIE_WITH_PARENT, str(os.getpid()), *self._argv],
            env=dict(env),
            stdin=subprocess.DEVNULL if self._stdin is None else self._stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=self._pass_fds,
            process_group=0,
        )

    def close(self) -> None:
        """End what starts ranks. The ranks are not touched."""
        if self._server is not None:
            self._server.close()


def piped_input() -> int | None:
    """The descriptor of standard input where it is a pipe, a socket or a file; None for a terminal and other devices.

    A rank has a process group of its own, and the kernel would stop it when it reads from a terminal.
    """
    mode = os.fstat(0).st_mode
    return 0 if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode) else None


def split_module_command(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """`python -P -m ranks train` as (["python", "-P"], ["ranks", "train"]); the second is empty for other commands."""
    flags = [argument.startswith("-") for argument in argv]
    at = list(argv).index("-m") if "-m" in argv else len(argv)
    return (list(argv[:at]), list(argv[at + 1 :])) if all(flags[1:at]) else (list(argv), [])
