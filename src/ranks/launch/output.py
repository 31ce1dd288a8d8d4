"""What a rank prints: into its log, and where it is shown, on to the terminal, without the traceback of its end."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from typing import IO, Literal

Channel = Literal["out", "err"]
CHANNELS: tuple[Channel, Channel] = ("out", "err")
Show = Callable[[int, Channel, str], None]
"""Called with the rank, the channel and text with its line ends."""

TRACEBACK = re.compile(rb"(?:^|(?<=[\r\n]))(?:\[rank\d+\]:\s?)?Traceback \(most recent call last\)")
HELD_S = 2.0
"""A traceback is held back this long: printed when the rank lives on, left to the failure report when it ends."""
TAIL_BYTES = 32_768
READS = 64
"""At most so many reads in a row, so that a rank that prints without end does not keep the launcher busy."""


class Output:
    """One pipe of one rank. `tail` keeps its end for the report of a failure."""

    def __init__(self, rank: int, channel: Channel, pipe: int, log: IO[bytes] | None, show: Show) -> None:
        self.rank, self.pipe = rank, pipe
        self.channel: Channel = channel
        self.log, self.show = log, show
        self.tail = b""
        self._waiting = b""
        self._held_since: float | None = None
        os.set_blocking(pipe, False)

    def pump(self, now_s: float) -> bool:
        """Read what is there. False at the end of the pipe."""
        for _ in range(READS):
            try:
                data = os.read(self.pipe, 65_536)
            except BlockingIOError:
                break
            if not data:
                return False
            if self.log is not None:
                with contextlib.suppress(OSError):  # a full disk must not end the run
                    self.log.write(data)
            self.tail = (self.tail + data)[-TAIL_BYTES:]
            self._waiting += data
            self._emit(now_s)
        return True

    def tick(self, now_s: float) -> None:
        """Let go of a traceback that did not end its rank, and of an unfinished line."""
        if self._held_since is None or now_s - self._held_since > HELD_S:
            self._held_since = None
            self._flush(len(self._waiting))

    def close(self, *, failed: bool) -> None:
        """Show the rest, but not the traceback that the failure report shows."""
        if not (failed and self._held_since is not None):
            self._flush(len(self._waiting))
        os.close(self.pipe)

    def _emit(self, now_s: float) -> None:
        if self._held_since is not None:
            return
        found = TRACEBACK.search(self._waiting)
        if found is not None:
            self._flush(found.start())
            self._held_since = now_s
        else:
            self._flush(max(self._waiting.rfind(b"\n"), self._waiting.rfind(b"\r")) + 1)

    def _flush(self, size: int) -> None:
        text, self._waiting = self._waiting[:size], self._waiting[size:]
        if text:
            self.show(self.rank, self.channel, text.decode("utf-8", errors="replace"))
