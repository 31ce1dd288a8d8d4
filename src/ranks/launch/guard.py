"""Start of a rank: tie its life to the launcher's, then become the rank's own program.

Run as a file by a bare interpreter (`python -I -S guard.py LAUNCHER_PID PROGRAM ARGS...`): setting the death signal
here instead of between fork and exec keeps Python code out of a forked process that has threads. Linux only; elsewhere
the sweeper alone ends the ranks of a dead launcher.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    launcher = int(sys.argv[1])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # survives exec
    if os.getppid() != launcher:  # it died before the signal was set
        os._exit(137)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
