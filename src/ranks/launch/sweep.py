"""Outlives a launcher that was killed: ends what is left of its ranks' process groups and removes its private folders.

Run as a file by a bare interpreter (`python -I -S sweep.py`), in a session of its own. It reads lines from the
launcher: `+PGID` a group started, `-PGID` it is gone, `d PATH` a folder to remove.
The end of input is the launcher's end.
"""

import contextlib
import os
import shutil
import signal
import sys


def main() -> None:
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    groups: set[int] = set()
    folders: list[str] = []
    for line in sys.stdin:
        kind, rest = line[0], line[1:].strip()
        if kind == "+":
            groups.add(int(rest))
        elif kind == "-":
            groups.discard(int(rest))
        else:
            folders.append(rest)
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
