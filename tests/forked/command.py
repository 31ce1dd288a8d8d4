"""A command that a forked process can run, and how that process becomes it."""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import importlib
import io
import os
import random
import runpy
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import thread as thread_pools
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from ranks.die_with_parent import die_with
from ranks.launch.gpus import gpu_build
from ranks.launch.processes.fork_server import DIE_WITH_PARENT, PR_SET_NAME, seed_numpy

READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "OMP_", "MKL_", "OPENBLAS_", "GOMP_", "KMP_", "MALLOC_")
READ_AT_START += ("ATEN_", "DNNL_", "ONEDNN_")
"""Variables with these beginnings are read once, when Python or a library starts."""
APPLIED = ("PYTHONUNBUFFERED", "PYTHONFAULTHANDLER")
"""Of those the ones that `become` reads. The launcher sets them for its ranks."""
CODE = "tests.forked.code"
PYTHON = sys.executable
"""Of the tests. A command of another program, which a test puts in its place, is executed."""
FIRST_OTHER = 3
"""The first descriptor after the standard streams."""


@dataclass(frozen=True)
class RanksCommand:
    """`python -m MODULE ARGUMENTS` of a module in `ranks`, or of CODE."""

    argv: list[str]
    """The whole command line, without a `DIE_WITH_PARENT` before it."""
    module: str
    arguments: list[str]
    imports_from_cwd: bool
    parent: int | None
    """The process that must outlive this one."""


def read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    """The variables of READ_AT_START without APPLIED, with their values."""
    return {name: value for name, value in env.items() if name.startswith(READ_AT_START) and name not in APPLIED}


AT_START = read_at_start(os.environ)
"""Those of the process that forks, and of all that come from it."""


def ranks_command(args: Any, env: Mapping[str, str]) -> RanksCommand | None:
    """The command of `args`, or None where it must be executed."""
    if isinstance(args, str | bytes | os.PathLike) or read_at_start(env) != AT_START:
        return None
    argv, parent = [os.fspath(argument) for argument in args], None
    if argv[: len(DIE_WITH_PARENT)] == list(DIE_WITH_PARENT):
        parent, argv = int(argv[len(DIE_WITH_PARENT)]), argv[len(DIE_WITH_PARENT) + 1 :]
    safe_path = argv[1:2] == ["-P"]
    rest = argv[2 if safe_path else 1 :]
    if argv[:1] != [PYTHON] or rest[:1] != ["-m"]:
        return None
    if rest[1].split(".")[0] != "ranks" and rest[1] != CODE:
        return None
    return RanksCommand(argv, rest[1], rest[2:], not safe_path, parent)


def become(command: RanksCommand, env: Mapping[str, str], keep: Sequence[int]) -> NoReturn:
    """Make this forked process look to `command` like an executed one, and run it to its end.

    `keep`: the descriptors that it inherits, as well as its standard streams.
    """
    if command.parent is not None:
        die_with(command.parent)
    start = FIRST_OTHER
    for descriptor in sorted(keep):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))
    default_signals()
    vars(weakref.finalize)["_registry"].clear()  # of the process that was forked, such as its temporary folders
    vars(thread_pools)["_threads_queues"].clear()  # its pools, whose threads do not exist here
    os.environ.clear()
    os.environ.update(env)
    show_variables(env)
    open_streams()
    sys.orig_argv, sys.argv = command.argv, ["-m", *command.arguments]
    sys.path[:] = [*([os.getcwd()] if command.imports_from_cwd else []), *SERVER_PATH]
    importlib.invalidate_caches()
    random.seed()
    seed_numpy()
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"python")
    subprocess.Popen = ForkingPopen
    finish(exit_code_of(command.module))


def show_variables(env: Mapping[str, str]) -> None:
    """Let /proc show the variables of this process: they are written over those with which the server was executed."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[47]), int(fields[48])  # env_start and env_end of proc(5); the state is fields[0]
    block = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in env.items())
    assert len(block) < end - start, "the server needs more room for variables"
    ctypes.memmove(start, block.ljust(end - start, b"\0"), end - start)


def open_streams() -> None:
    """The objects of the standard streams. Those of the process that was forked may hold text that it writes itself."""
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))

    def opened(descriptor: int, mode: str) -> io.TextIOWrapper:
        encoding, errors = ENCODINGS[descriptor]
        file = open(descriptor, mode, 0 if unbuffered and mode == "wb" else -1, closefd=False)  # noqa: SIM115
        by_line = not unbuffered and (os.isatty(descriptor) or descriptor == 2)
        return io.TextIOWrapper(file, encoding, errors, line_buffering=by_line, write_through=unbuffered)

    sys.stdin = sys.__stdin__ = opened(0, "rb")
    sys.stdout = sys.__stdout__ = opened(1, "wb")
    sys.stderr = sys.__stderr__ = opened(2, "wb")
    (faulthandler.enable if os.environ.get("PYTHONFAULTHANDLER") else faulthandler.disable)()


ENCODINGS = [(stream.encoding, stream.errors) for stream in (sys.stdin, sys.stdout, sys.stderr)]
"""What Python has chosen for each standard stream."""
SERVER_PATH: list[str] = []
"""Where every command finds modules, after its own folder. The server writes it."""


def default_signals() -> None:
    """Forget the handlers of the process that was forked, as an executed process does."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python does when it starts
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_code_of(module: str) -> int:
    """Run a module as `python -m` does."""
    sys.modules.pop(module, None)  # the process that was forked may have imported it
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return int(end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException as error:
        trace = error.__traceback__
        sys.excepthook(type(error), error, trace.tb_next if trace else None)
        return 1
    return 0


def finish(code: int) -> NoReturn:
    """End this process as Python ends one, without a return into the process that was forked."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or 120
    os._exit(code)


BUILT_FOR_GPUS = bool(gpu_build())
"""Then a command may have started threads of CUDA or of torch's backward passes, which do not survive a fork."""


class ForkingPopen(subprocess.Popen[Any]):
    """`subprocess.Popen` in a forked command: it forks another command of `ranks` from this process.

    Other threads than the main one execute it: at its end the new process would wait for a pool of threads to which
    its only thread belongs. So the checks of `ranks doctor` are executed, and find torch as a user's commands do.
    """

    def __init__(self, args: Any, **options: Any) -> None:
        env = options.get("env") or os.environ
        executes = BUILT_FOR_GPUS or options.get("preexec_fn") or threading.current_thread() != threading.main_thread()
        command = None if executes else ranks_command(args, env)
        if command is not None:
            options["preexec_fn"] = partial(become, command, dict(env), options.get("pass_fds", ()))
        super().__init__(args, **options)
