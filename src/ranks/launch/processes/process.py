"""One rank as a process: started in its own process group, watched, and ended with all its children."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from ranks.launch.output import CHANNELS, TAIL_BYTES, Channel, Output, Show
from ranks.launch.processes.start import Start

ENDED_S = 30.0
"""How long to wait for a killed rank. One that takes longer is stuck in the kernel (a disk, a driver)."""
GONE_S = 5.0
"""How long to wait for the children of a killed rank (a process inside a system call can take a while to end)."""


class RankProcess:
    """A rank. `code`: None while it runs, then the exit code as in subprocess (negative: a signal)."""

    def __init__(
        self,
        rank: int,
        start: Start,
        env: Mapping[str, str],
        *,
        error_file: Path,
        log: Path | None,
        show: Show | None,
    ) -> None:
        """Start the rank. Its output goes to `log`, and to `show` where that is given. Raises OSError."""
        self.rank, self.error_file = rank, error_file
        self.code: int | None = None
        self.ended_s = 0.0
        self.outputs: list[Output] = []
        self._log: IO[bytes] | None = log.open("a+b", buffering=0) if log is not None else None
        self._log_start = os.fstat(self._log.fileno()).st_size if self._log is not None else 0
        with contextlib.ExitStack() as writers:
            streams = [self._stream(channel, show, writers) for channel in CHANNELS]
            self._process = start(env, *streams)
        self.pid = self._process.pid

    def _stream(self, channel: Channel, show: Show | None, writers: contextlib.ExitStack) -> int:
        if show is None:
            if self._log is not None:
                return self._log.fileno()
            null = os.open(os.devnull, os.O_WRONLY)
            writers.callback(os.close, null)
            return null
        reader, writer = os.pipe()
        writers.callback(os.close, writer)
        self.outputs.append(Output(self.rank, channel, reader, self._log, show))
        return writer

    def poll(self) -> bool:
        """Whether the rank has ended. The rest of its process group is then killed too."""
        if self.code is None:
            self.code = self._process.poll()
            if self.code is not None:
                self.ended_s = time.monotonic()
                self.kill()
        return self.code is not None

    def send(self, signum: int) -> None:
        """Send a signal to the rank itself, not to its children."""
        if self.code is None:
            self._process.send_signal(signum)

    def kill(self) -> None:
        """Send SIGKILL to the whole process group."""
        self.send_group(signal.SIGKILL)

    def send_group(self, signum: int) -> None:
        """Send a signal to the whole process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signum)

    def end(self, *, reported: str | None, deadline_s: float) -> bool:
        """Kill the process group, wait until all of it has ended, close the output. `reported`: see `Output.close`.

        False where the rank has not ended by `deadline_s` (of `time.monotonic`). SIGKILL then ends it as soon as
        the kernel returns from what it does for the rank.
        """
        self.kill()
        while (code := self._process.poll()) is None and time.monotonic() < deadline_s:
            time.sleep(0.01)
        if self.code is None:
            self.code = -signal.SIGKILL if code is None else code
        gone_s = time.monotonic() + GONE_S
        while code is not None and self._group_alive() and time.monotonic() < gone_s:
            time.sleep(0.01)
        for output in self.outputs:
            output.pump(time.monotonic())
            output.close(reported)
        self.outputs.clear()
        if self._log is not None:
            self._log.close()
        return code is not None

    def tail(self) -> str:
        """The end of its output."""
        for output in self.outputs:
            output.pump(time.monotonic())
        if self.outputs:
            return self.outputs[-1].tail.decode("utf-8", errors="replace")
        if self._log is None:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        start = max(self._log_start, size - TAIL_BYTES)
        return os.pread(self._log.fileno(), size - start, start).decode("utf-8", errors="replace")

    def _group_alive(self) -> bool:
        """Whether a process of the group is left. The launcher is the parent of its orphans (subreaper)."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return False
        return True
