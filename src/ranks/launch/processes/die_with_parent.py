"""Start a rank, or the fork server, that the kernel kills when its launcher dies (PR_SET_PDEATHSIG): exec a program.

Run as a file by a bare interpreter: `python -I -S die_with_parent.py LAUNCHER_PID PROGRAM ARGS...`. The signal is set
here and not between fork and exec, because the launcher has threads and Python code must not run in its forked child.
Linux only. On other systems the orphan reaper alone ends the ranks of a dead launcher.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    launcher = int(sys.argv[1])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # exec keeps this setting
    if os.getppid() != launcher:  # the launcher died before the signal was set
        os._exit(137)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
