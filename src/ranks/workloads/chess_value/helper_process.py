"""A process that works for a rank over a socket: a module of this package, which gets the socket's number.

The kernel kills it when the rank dies. Signals to a whole group of processes do not reach it: a rank saves before it
ends, and ends it then. While it works it sends signs of life (`RankConnection`), so the rank knows when it hangs.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ranks.die_with_parent import dying_with_this_process
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.process_state import IS_STOPPED, is_stopped
from ranks.errors import ProcessLost
from ranks.workloads.chess_value.rank_connection import SIGN

PACKAGE_FOLDER = str(Path(__file__).parents[3])
START = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module(sys.argv.pop(1), run_name='__main__')"
"""Runs a module of this package. PYTHONPATH would do so too, but engines that the process starts inherit it."""
ENDED_S = 10.0
WAITS, STARTING = 2, 12
"""Parts in which a silence is waited for, and how many times longer one may be that is before the first sign."""


class HelperLost(ProcessLost):
    """A process that worked for a rank was killed."""


class HelperHangs(HelperLost):
    """A process that works for a rank lives, and shows no sign of life."""

    hangs = True


class HelperProcess:
    """The rank's side. The thread that makes it outlives it; any one thread at a time talks to it."""

    def __init__(self, module: str, work: str, silence_s: float, environ: Mapping[str, str] | None = None) -> None:
        """`work`: what it does, for errors. `silence_s`: without a sign of life for longer it hangs. `environ`:
        variables that it has in addition."""
        self._work, self._silence_s = work, silence_s
        self._waits = STARTING * WAITS
        """Waits without a sign after which it hangs."""
        ours, theirs = socket.socketpair()
        if silence_s < math.inf:
            wait = struct.pack("ll", *divmod(round(1e6 * silence_s / WAITS), 1_000_000))
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, wait)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, wait)
        argv = [sys.executable, "-P", "-c", START, PACKAGE_FOLDER, module, str(theirs.fileno())]
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            self._process = subprocess.Popen(
                dying_with_this_process(argv),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(environ or {})},
                process_group=0,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            theirs.close()
        self._connection: Connection[Any, Any] = Connection(ours.detach())

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send(self, request: Any) -> None:
        """Raises HelperLost where it was killed, HelperHangs where it hangs, and a RuntimeError where it ended with an
        error."""
        try:
            self._connection.send(request)
        except BlockingIOError:
            raise self._hangs() from None
        except OSError:
            raise self._ended() from None

    def receive(self) -> Any:
        """The next answer. Raises as `send`."""
        waits = 0
        while True:
            try:
                answer = self._connection.recv()
            except BlockingIOError:  # its limit counts time in which all processes were stopped, so it has several
                waits += 1
                if waits >= self._waits:
                    raise self._hangs() from None
                continue
            except (EOFError, OSError):
                raise self._ended() from None
            waits, self._waits = 0, WAITS
            if answer != SIGN:
                return answer

    def kill(self) -> None:
        """What it started, such as engines, dies with it. Another thread may be waiting for an answer."""
        self._process.kill()

    def abandon(self) -> None:
        """Kill it, and never read what it has sent. The next request raises HelperLost."""
        self.kill()
        self._connection.close()

    def close(self, grace_s: float = 0.0) -> None:
        """End the process: it may take `grace_s` after its socket has closed. No thread waits for an answer."""
        self._connection.close()
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _hangs(self) -> HelperHangs:
        why = f"it {IS_STOPPED}, " if is_stopped(self._process.pid) else ""
        self._process.kill()
        silence = f"no sign of life for {self._silence_s:g} s in the phase {heartbeat.phase.words}"
        return HelperHangs(f"the process that {self._work} hangs: {why}{silence}")

    def _ended(self) -> Exception:
        """It has closed its socket, so it ends."""
        try:
            code = self._process.wait(ENDED_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if code < 0:
            return HelperLost(f"the process that {self._work} was killed by signal {-code} (9: perhaps out of memory)")
        return RuntimeError(f"the process that {self._work} ended with exit code {code}")
