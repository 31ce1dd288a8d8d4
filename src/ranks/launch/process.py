"""One rank as a process: started through the guard in a group of its own, watched, ended with all it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from ranks.launch.output import CHANNELS, TAIL_BYTES, Channel, Output, Show

GUARD = Path(__file__).with_name("guard.py")
GONE_S = 5.0
"""How long to wait for what a killed rank had started (a process in the kernel can take a while to go)."""


class RankProcess:
    """A running rank. `code` is None while it runs, then as in subprocess (negative: the signal)."""

    def __init__(
        self,
        rank: int,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        error_file: Path,
        log: Path | None,
        show: Show | None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Start it. Output goes to `log`, and through `show` where that is given. Raises OSError."""
        self.rank, self.error_file = rank, error_file
        self.code: int | None = None
        self.ended_s = 0.0
        self.outputs: list[Output] = []
        self._log: IO[bytes] | None = log.open("a+b", buffering=0) if log is not None else None
        self._log_start = os.fstat(self._log.fileno()).st_size if self._log is not None else 0
        with contextlib.ExitStack() as ends:
            streams = [self._stream(channel, show, ends) for channel in CHANNELS]
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), str(os.getpid()), *argv],
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=streams[0],
                stderr=streams[1],
                pass_fds=pass_fds,
                process_group=0,
            )
        self.pid = self._process.pid

    def _stream(self, channel: Channel, show: Show | None, ends: contextlib.ExitStack) -> int | IO[bytes]:
        if show is None:
            return self._log if self._log is not None else subprocess.DEVNULL
        reader, writer = os.pipe()
        ends.callback(os.close, writer)
        self.outputs.append(Output(self.rank, channel, reader, self._log, show))
        return writer

    def poll(self) -> bool:
        """True when it has ended; then everything else in its process group is killed too."""
        if self.code is None:
            self.code = self._process.poll()
            if self.code is not None:
                self.ended_s = time.monotonic()
                self.kill()
        return self.code is not None

    def send(self, signum: int) -> None:
        """A signal to the rank itself, not to what it started."""
        if self.code is None:
            self._process.send_signal(signum)

    def kill(self) -> None:
        """SIGKILL to its whole process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def end(self, *, failed: bool) -> None:
        """Kill what is left, wait until all of it is gone, close its output."""
        self.kill()
        code = self._process.wait()
        self.code = code if self.code is None else self.code
        deadline = time.monotonic() + GONE_S
        while self._group_left() and time.monotonic() < deadline:
            time.sleep(0.01)
        for output in self.outputs:
            output.pump(time.monotonic())
            output.close(failed=failed)
        self.outputs.clear()
        if self._log is not None:
            self._log.close()

    def tail(self) -> str:
        """The end of what it printed."""
        for output in self.outputs:
            output.pump(time.monotonic())
        if self.outputs:
            return self.outputs[-1].tail.decode("utf-8", errors="replace")
        if self._log is None:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        start = max(self._log_start, size - TAIL_BYTES)
        return os.pread(self._log.fileno(), size - start, start).decode("utf-8", errors="replace")

    def _group_left(self) -> bool:
        """Whether the group still holds a process. Its orphans are ours (subreaper): reaped here."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return False
        return True
