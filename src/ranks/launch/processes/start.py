"""How a rank's process is started: by fork from a process that has imported torch, or by executing its command."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

from ranks.launch.processes.fork_server import ForkedProcess, ForkServer

DIE_WITH_PARENT = Path(__file__).with_name("die_with_parent.py")
Start = Callable[[Mapping[str, str], int, int], "ForkedProcess | subprocess.Popen[bytes]"]
"""(variables, stdout, stderr) -> a new process, the leader of its own process group. Raises OSError."""


@contextlib.contextmanager
def starter(argv: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int]) -> Generator[Start]:
    """The way to start `argv`. A command `python -m MODULE ...` is forked (Linux); where that fails, it is executed.

    `env`: the variables that all ranks share. `pass_fds`: descriptors that each rank inherits.
    """

    def execute(env: Mapping[str, str], stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(DIE_WITH_PARENT), str(os.getpid()), *argv],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=pass_fds,
            process_group=0,
        )

    def fork(env: Mapping[str, str], stdout: int, stderr: int) -> ForkedProcess | subprocess.Popen[bytes]:
        try:
            return server.fork(module, env, stdout, stderr)
        except OSError:  # the server could not import torch: the rank says why
            return execute(env, stdout, stderr)

    python, module = split_module_command(argv)
    if not module or sys.platform != "linux":
        yield execute
        return
    with contextlib.closing(ForkServer(python, env, pass_fds)) as server:
        yield fork


def split_module_command(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """`python -P -m ranks train` as (["python", "-P"], ["ranks", "train"]); the second is empty for other commands."""
    flags = [argument.startswith("-") for argument in argv]
    at = list(argv).index("-m") if "-m" in argv else len(argv)
    return (list(argv[:at]), list(argv[at + 1 :])) if all(flags[1:at]) else (list(argv), [])
