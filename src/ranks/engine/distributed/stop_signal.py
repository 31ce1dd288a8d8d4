"""Signals, seen at once: a thread reads the wake-up descriptor, so a collective in progress cannot hide them.

(A Python signal handler runs only when the main thread returns to Python, which inside a collective takes seconds.)
Before `Run.open` and after `Run.finish` a signal ends the process at once: there is nothing to lose. In between it
becomes a flag, which the next vote carries to all ranks. A Ctrl-C after it ends the process at once; another SIGTERM
does not, since whoever stops a whole group (Slurm, systemd) signals ranks and launcher, and the launcher passes it on.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from types import FrameType
from typing import ClassVar

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def _ignore(signum: int, frame: FrameType | None) -> None:
    """The handler that must exist for the wake-up descriptor to be written."""


def asked_to_stop() -> int:
    """The signal that has come to this process since it listens, 0 while there was none: for a wait that no other rank
    shares, and that may never end."""
    return max((stop.received for stop in StopSignal.listening), default=0)


class StopSignal:
    """`received`: the signal number, 0 while there was none. `deferred`: a signal waits for the next boundary."""

    listening: ClassVar[list[StopSignal]] = []
    """Those of this process that are installed."""

    def __init__(self) -> None:
        self.received = 0
        self.deferred = False
        self._reader, self._writer = socket.socketpair()
        self._previous: dict[signal.Signals, object] = {}

    def install(self) -> None:
        """Only the main thread may do this; elsewhere (a notebook's worker) signals stay as they are. A process forked
        off (a worker that reads data, an environment) has its own signals, which are none of the rank's."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for signum in SIGNALS:
            self._previous[signum] = signal.signal(signum, _ignore)
        threading.Thread(target=self._watch, name="ranks-stop", daemon=True).start()
        os.register_at_fork(after_in_child=self.uninstall)
        self.listening.append(self)

    def uninstall(self) -> None:
        if self._previous:
            signal.set_wakeup_fd(-1)
            for signum, handler in self._previous.items():
                signal.signal(signum, handler)  # type: ignore[arg-type]
            self._previous.clear()
            self._writer.close()
            self.listening.remove(self)

    def _watch(self) -> None:
        while data := self._reader.recv(1):
            if data[0] not in SIGNALS:
                continue
            if not self.deferred or (self.received and data[0] == signal.SIGINT):
                sys.stdout.flush()
                os._exit(128 + data[0])
            self.received = self.received or data[0]
        self._reader.close()
