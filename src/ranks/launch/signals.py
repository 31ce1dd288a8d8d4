"""Signals of the launcher as numbers read from a pipe, so that one loop waits for them and for everything else."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class SignalPipe:
    """While it is entered (main thread only) SIGTERM, SIGINT, SIGHUP and SIGCHLD arrive here and do nothing else.

    A SIGHUP that was ignored at the start (`nohup`) stays ignored.
    """

    def __enter__(self) -> SignalPipe:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self._writer, False)
        self._handlers: dict[signal.Signals, Any] = {}
        for signum in (*STOPPING, signal.SIGCHLD):
            if not (signum == signal.SIGHUP and signal.getsignal(signum) is signal.SIG_IGN):
                self._handlers[signum] = signal.signal(signum, _arrived)
        self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        return self

    def read(self) -> list[int]:
        """The stopping signals that arrived since the last call, in order."""
        try:
            return [number for number in os.read(self.reader, 4096) if number in STOPPING]
        except BlockingIOError:
            return []

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for signum, handler in self._handlers.items():
            signal.signal(signum, handler)
        os.close(self.reader)
        os.close(self._writer)


def _arrived(signum: int, frame: FrameType | None) -> None:
    """The wake-up descriptor carries the number; a handler must only exist."""
