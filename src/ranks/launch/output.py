"""The output of a rank: written to its log and, where wanted, shown on the terminal without its final traceback."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
from collections.abc import Callable
from typing import IO, Literal

Channel = Literal["out", "err"]
CHANNELS: tuple[Channel, Channel] = ("out", "err")
Show = Callable[[int, Channel, str], None]
"""Called with the rank, the channel and text with its line ends. The last line may continue in the next call."""

TRACEBACK = re.compile(rb"(?:^|(?<=[\r\n]))(?:\[rank\d+\]:\s?)?Traceback \(most recent call last\)")
TRACEBACK_BYTES = 64
"""No match of TRACEBACK is longer."""
HELD_S = 2.0
"""A traceback is held back this long. It is shown if the rank lives on; else the failure report shows it."""
TAIL_BYTES = 32_768
READS = 64
"""Most reads in a row, so that a rank that prints without end does not block the launcher."""


class Output:
    """One pipe of one rank. `tail`: the last bytes, for the report of a failure."""

    def __init__(self, rank: int, channel: Channel, pipe: int, log: IO[bytes] | None, show: Show) -> None:
        self.rank, self.pipe = rank, pipe
        self.channel: Channel = channel
        self.log, self.show = log, show
        self.tail = b""
        self._pending = bytearray()
        self._searched = 0
        """How many of the pending bytes were searched for line ends and tracebacks."""
        self._old = 0
        """How many of the pending bytes were there at the last tick. An unfinished line is given the time to end."""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held_since: float | None = None
        os.set_blocking(pipe, False)

    def pump(self, now_s: float) -> bool:
        """Read what has arrived. False at the end of the pipe."""
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
            self._pending += data
            self._show_lines(now_s)
        return True

    def tick(self, now_s: float) -> None:
        """Show a traceback that did not end its rank, and what was there of an unfinished line at the last tick."""
        if self._held_since is not None and now_s - self._held_since > HELD_S:
            self._held_since = None
            self._flush(len(self._pending))
        if self._held_since is None:
            self._flush(self._old)
            self._old = len(self._pending)

    def close(self, reported: str | None = None) -> None:
        """Show the rest. `reported`: the traceback that the failure report shows, which is left out; empty where its
        text is not known, and all that is held back is left out."""
        if reported is not None and self._held_since is not None:
            before, found, after = self._pending.rpartition(reported.encode(errors="replace") or self._pending)
            self._pending = before + after if found else bytearray()
        self._flush(len(self._pending), final=True)
        os.close(self.pipe)

    def _show_lines(self, now_s: float) -> None:
        """Show whole lines; from the start of a traceback on, hold everything back."""
        if self._held_since is not None:
            return
        start, self._searched = self._searched, len(self._pending)
        found = TRACEBACK.search(self._pending, max(0, start - TRACEBACK_BYTES))
        if found is not None:
            self._flush(found.start())
            self._held_since = now_s
        else:
            self._flush(max(self._pending.rfind(b"\n", start), self._pending.rfind(b"\r", start)) + 1)

    def _flush(self, size: int, *, final: bool = False) -> None:
        text = self._decoder.decode(bytes(self._pending[:size]), final)
        del self._pending[:size]
        self._searched, self._old = max(0, self._searched - size), max(0, self._old - size)
        if text:
            self.show(self.rank, self.channel, text)
