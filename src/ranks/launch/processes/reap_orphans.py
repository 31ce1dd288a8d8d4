"""The orphan reaper's process: kills what is left when a launcher is killed.

Run as a file by a bare interpreter (`python -I -S reap_orphans.py`) in a session of its own. It reads lines from the
launcher: `+PGID` a process group has started, `-PGID` it has ended, `d PATH` a folder to remove at the end. The end of
the input means that the launcher has ended. Process groups that are still listed are then killed.
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
