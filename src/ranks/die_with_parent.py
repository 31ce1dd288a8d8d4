"""Processes that the kernel kills when the process that started them dies (PR_SET_PDEATHSIG): ranks, the fork server,
workers, copies of files, engines.

A worker calls `die_with`. Any other program is started through this file, run by a bare interpreter:
`python -I -S die_with_parent.py PARENT_PID PROGRAM ARGS...`. The signal is set here and not between fork and exec,
because the parent has threads and Python code must not run in its forked child. The kernel counts the thread that
started the program as its parent: that thread must live as long as the program. Linux only. On other systems the
orphan reaper alone ends the ranks of a dead launcher, and engines see the end of their input.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def dying_with_this_process(argv: list[str]) -> list[str]:
    """The command line of a program that dies with the thread that starts it. argv[0]: its path."""
    if sys.platform != "linux":
        return argv
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *argv]


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent dies, from now on (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def die_with(parent: int) -> None:
    """The same with the process that has started this one, also where it has died already."""
    die_with_parent()
    if os.getppid() != parent:
        os._exit(137)


def main() -> None:
    die_with(int(sys.argv[1]))  # exec keeps the setting
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
