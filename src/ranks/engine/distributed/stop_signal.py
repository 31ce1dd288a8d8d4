"""SIGTERM and SIGINT (in a Slurm job SIGUSR1 too), noticed at once by a thread that reads Python's wake-up descriptor.

A Python signal handler runs only when the main thread returns to Python. Inside a collective that
takes seconds; the thread does not wait for it.

While no run is open, a signal ends the process at once: there is nothing to save. While a run is
open, a signal sets `received`, and the next vote carries it to all ranks. A Ctrl-C after that ends
the process at once. Another SIGTERM does not: Slurm and systemd signal the launcher and all ranks,
and the launcher passes its signal on, so ranks get two.

A process without a launcher ends itself where it shows no progress for a grace time after a SIGTERM.
(A launcher ends its ranks.)
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import ClassVar

from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.phases import GRACE_FACTOR

GRACE_POLL_S = 0.5
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def means_sigterm(environ: Mapping[str, str] = os.environ) -> tuple[signal.Signals, ...]:
    """Other signals that stop as SIGTERM does: SIGUSR1 in a Slurm job, as sent by `sbatch --signal=USR1@120` before the
    time limit."""
    return (signal.SIGUSR1,) if "SLURM_JOB_ID" in environ else ()


ANSWER = "\nstopping after this iteration, with a checkpoint; Ctrl-C again ends at once, without one"


def _ignore(signum: int, frame: FrameType | None) -> None:
    """The wake-up descriptor is written only for signals that have a Python handler."""


def asked_to_stop() -> int:
    """The signal that this process has received since it listens, 0 without one. For a wait that
    the other ranks do not share and that may never end."""
    return max((stop.received for stop in StopSignal.listening), default=0)


class StopSignal:
    """`received`: the number of the first signal, 0 without one."""

    listening: ClassVar[list[StopSignal]] = []
    """Those of this process that are installed."""

    def __init__(
        self,
        deferred: Callable[[], bool],
        *,
        unsupervised: bool = False,
        grace_s: float = 60.0,
        saved: Callable[[], int],
    ) -> None:
        """`deferred`: whether a signal waits for the next boundary. `unsupervised`: no launcher speaks for
        this process, so it answers the first Ctrl-C, and ends after `grace_s` without progress.
        `saved`: the iteration of the newest checkpoint, -1 without one."""
        self.received = 0
        self.deferred, self.unsupervised, self.grace_s, self.saved = deferred, unsupervised, grace_s, saved
        self._reader, self._writer = socket.socketpair()
        self._previous: dict[signal.Signals, object] = {}

    def install(self) -> None:
        """Begin to listen. Does nothing outside the main thread (in a notebook's worker signals
        stay as they are). A forked process (a data worker, an environment) gets the previous
        handlers back: its signals are not the rank's.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for signum in (*SIGNALS, *means_sigterm()):
            self._previous[signum] = signal.signal(signum, _ignore)
        threading.Thread(target=self._watch, name="ranks-stop", daemon=True).start()
        os.register_at_fork(after_in_child=self.uninstall)
        self.listening.append(self)

    def uninstall(self) -> None:
        """Give the previous handlers back."""
        if self._previous:
            signal.set_wakeup_fd(-1)
            for signum, handler in self._previous.items():
                signal.signal(signum, handler)  # type: ignore[arg-type]
            self._previous.clear()
            self._writer.close()
            self.listening.remove(self)

    def _watch(self) -> None:
        while data := self._reader.recv(1):
            if data[0] not in (*SIGNALS, *means_sigterm()):
                continue
            signum = data[0] if data[0] in SIGNALS else signal.SIGTERM
            if not self.deferred() or (self.received and signum == signal.SIGINT):
                sys.stdout.flush()
                os._exit(128 + signum)
            if not self.received and self.unsupervised:
                if signum == signal.SIGINT:
                    print(ANSWER, file=sys.stderr, flush=True)
                else:
                    threading.Thread(target=self._end_if_it_hangs, name="ranks-grace", daemon=True).start()
            self.received = self.received or signum
        self._reader.close()

    def _end_if_it_hangs(self) -> None:
        """End this process without a save where it shows no progress for the grace time."""
        progress, since_s = heartbeat.progress, time.monotonic()
        while self._previous:
            time.sleep(GRACE_POLL_S)
            if heartbeat.progress != progress:
                progress, since_s = heartbeat.progress, time.monotonic()
            grace_s = max(self.grace_s, GRACE_FACTOR * heartbeat.slowest_s)
            if self._previous and self.deferred() and time.monotonic() - since_s > grace_s:
                where = f"resumes at {self.saved()}" if self.saved() >= 0 else "starts from the beginning"
                print(f"stopped without a save; {where}", file=sys.stderr, flush=True)
                os._exit(128 + signal.SIGTERM)
