"""Signals of the launcher, readable from a pipe, so that one loop waits for signals and output together."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any

from ranks.engine.distributed.stop_signal import means_sigterm

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class SignalPipe:
    """While entered (main thread only), these signals, SIGTSTP (Ctrl-Z) and SIGCHLD are written to a pipe and do
    nothing else; in a Slurm job SIGUSR1 too.

    A SIGHUP or SIGTSTP that was ignored before (`nohup`, a shell without job control) stays ignored.
    """

    def __enter__(self) -> SignalPipe:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self._writer, False)
        self._handlers: dict[signal.Signals, Any] = {}
        self._stops = (*STOP_SIGNALS, *means_sigterm())
        for signum in (*self._stops, signal.SIGTSTP, signal.SIGCHLD):
            if not (signum in (signal.SIGHUP, signal.SIGTSTP) and signal.getsignal(signum) is signal.SIG_IGN):
                self._handlers[signum] = signal.signal(signum, _do_nothing)
        self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        return self

    def read(self) -> list[int]:
        """The stop signals, and SIGTSTP, that arrived since the last call, in order."""
        try:
            return [number for number in os.read(self.reader, 4096) if number in (*self._stops, signal.SIGTSTP)]
        except BlockingIOError:
            return []

    def pause(self) -> None:
        """Do what SIGTSTP does by default: stop until SIGCONT. The kernel leaves it out where no shell would continue
        this process."""
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, _do_nothing)

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for signum, handler in self._handlers.items():
            signal.signal(signum, handler)
        os.close(self.reader)
        os.close(self._writer)


def _do_nothing(signum: int, frame: FrameType | None) -> None:
    """Python writes the number to the wake-up descriptor only for signals that have a handler."""
