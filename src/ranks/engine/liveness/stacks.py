"""The Python stack of a process that may hang: it writes the stack to a file when it gets a signal.

faulthandler writes it inside the C signal handler, so this works in an endless loop, in a wait inside a C library, and
while another thread holds Python's lock. It does not work in a process that is stopped or waits inside the kernel.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

STACK_SIGNAL = signal.SIGUSR2
STACKS_VARIABLE = "RANKS_STACK_FILE"
"""The environment variable with the path of the file that stacks are appended to."""
THREAD = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$", re.MULTILINE)
FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)


def register(environ: Mapping[str, str] = os.environ) -> bool:
    """Write the stack to the file that the launcher named at `STACK_SIGNAL`. False where that is not possible.

    A program that uses the signal itself keeps it.
    """
    path = environ.get(STACKS_VARIABLE)
    if path is None or signal.getsignal(STACK_SIGNAL) is not signal.SIG_DFL:
        return False
    with contextlib.suppress(OSError, RuntimeError):
        file = open(path, "ab", buffering=0)  # noqa: SIM115  faulthandler keeps it open
        faulthandler.register(STACK_SIGNAL, file=file, all_threads=True)
        return True
    return False


class StackFile:
    """What a process wrote, as the launcher reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0

    def new_frames(self) -> list[tuple[str, int, str]]:
        """(file, line, function) of the main thread, innermost first, from what was written since the last call; empty
        where nothing was written."""
        try:
            text = self.path.read_bytes()[self._read :]
        except OSError:
            return []
        self._read += len(text)
        return frames_of(text.decode("utf-8", errors="replace"))


def frames_of(dump: str, *, current: bool = False) -> list[tuple[str, int, str]]:
    """(file, line, function) of the main thread in faulthandler's text, innermost first.

    The main thread is the oldest one, which is written last. `current`: of the thread that crashed, where the text
    names one.
    """
    threads = list(THREAD.finditer(dump))
    if not threads:
        return []
    crashed = [thread for thread in threads if current and thread[0].startswith("Current")]
    block = dump[(crashed or threads[-1:])[0].end() :].lstrip("\n").partition("\n\n")[0]
    return [(file, int(line), name) for file, line, name in FRAME.findall(block)]
