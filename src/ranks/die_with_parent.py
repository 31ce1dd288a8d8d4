"""Start a program that the kernel kills when the process that started it dies (PR_SET_PDEATHSIG): ranks, the fork
server, copies of files, engines.

Run as a file by a bare interpreter: `python -I -S die_with_parent.py PARENT_PID PROGRAM ARGS...`. The signal is set
here and not between fork and exec, because the parent has threads and Python code must not run in its forked child.
The kernel counts the thread that started the program as its parent: that thread must live as long as the program.
Linux only. On other systems the orphan reaper alone ends the ranks of a dead launcher, and engines see the end of
their input.
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


def main() -> None:
    parent = int(sys.argv[1])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # exec keeps this setting
    if os.getppid() != parent:  # the parent died before the signal was set
        os._exit(137)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
