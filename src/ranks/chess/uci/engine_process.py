"""An engine as a child process: lines in and lines out, without threads of ours.

A program that writes without end fills no memory: its output is read only when somebody waits for a line.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
import weakref
from collections import deque
from collections.abc import Sequence

from ranks.die_with_parent import dying_with_this_process
from ranks.engine.liveness.process_state import is_stopped

LONGEST_LINE = 1 << 16
READ_BYTES = 1 << 16
LINES_KEPT = 10
WRITE_S = 60.0
"""How long the engine may leave its input unread."""
POLLS_FORGOTTEN = 100
"""Of READ_BYTES each, in `forget_lines`."""


class OutputEnded(Exception):
    """The engine has closed its output, or has ended."""


class EngineProcess:
    """A running program. Only one thread uses it at a time."""

    def __init__(self, command: Sequence[str], *, dies_with_us: bool = False) -> None:
        """Start the program. Raises OSError.

        dies_with_us: the kernel kills it when the thread that calls this ends or is killed (Linux)."""
        argv = dying_with_this_process(list(command)) if dies_with_us else list(command)
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0,  # no Ctrl-C from our terminal; its children are killed with it
        )
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._stdin, self._stdout, self._stderr = (
            file.fileno() for file in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        os.set_blocking(self._stdin, False)
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        self._poll.register(self._stderr, select.POLLIN)
        self._lines: deque[bytes] = deque()
        self._partial = b""
        self._last: deque[bytes] = deque(maxlen=LINES_KEPT)
        self._ended = self._closed = False
        self._finalizer = weakref.finalize(self, _kill, self._process)

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    @property
    def stopped(self) -> bool:
        """Whether a signal has stopped it (Linux)."""
        return is_stopped(self._process.pid)

    @property
    def closed(self) -> bool:
        """Whether `kill` was called."""
        return self._closed

    @property
    def ended(self) -> bool:
        """Whether its standard output has ended; lines that were read before may be left."""
        return self._ended

    @property
    def output(self) -> int:
        """The descriptor of its standard output."""
        return self._stdout

    @property
    def last_lines(self) -> list[str]:
        """The last lines that it wrote, to standard output or standard error."""
        return [_text(line) for line in self._last]

    def send(self, text: str) -> None:
        """Write lines, each with its line break. Raises OSError if the engine does not read them."""
        if self._closed:
            raise OSError("the engine was killed")
        rest, deadline_s = text.encode(), time.monotonic() + WRITE_S
        while rest:
            try:
                rest = rest[os.write(self._stdin, rest) :]
            except BlockingIOError:  # it waits until we read what it writes, perhaps
                if time.monotonic() > deadline_s:
                    raise
                self.wait(0.01)

    def next_line(self, seconds: float) -> str | None:
        """The next line without spaces at its ends; None after a timeout. Raises OutputEnded."""
        deadline_s = time.monotonic() + seconds
        while not self._lines:
            if self._ended or self._closed:
                raise OutputEnded
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return None
            self.wait(left_s)
        return _text(self._lines.popleft())

    def take_lines(self) -> list[bytes]:
        """The lines that have been read and not taken, without waiting. Raises OutputEnded if there will be none."""
        if not self._lines and (self._ended or self._closed):
            raise OutputEnded
        lines = list(self._lines)
        self._lines.clear()
        return lines

    def forget_lines(self) -> None:
        """Drop what the engine has written so far. Raises OutputEnded."""
        for _ in range(POLLS_FORGOTTEN):
            self.take_lines()
            if not self.wait(0):
                return

    def wait(self, seconds: float) -> bool:
        """Wait for output and read some. Returns whether there was any."""
        if self._closed:
            return False
        ready = self._poll.poll(1000 * seconds)
        for descriptor, _ in ready:
            self._read(descriptor)
        return bool(ready)

    def read_output(self) -> None:
        """Read once from its standard output, which a selector has found ready."""
        if not self._closed and not self._ended:
            self._read(self._stdout)

    def ended_by(self, seconds: float) -> int | None:
        """The exit code of the process, or minus the signal that ended it; None if it still runs after the wait."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Kill the process and its children at once, and reap it."""
        self._closed = True
        self._finalizer()

    def _read(self, descriptor: int) -> None:
        chunk = os.read(descriptor, READ_BYTES)
        if not chunk:
            self._poll.unregister(descriptor)
            if descriptor == self._stdout:
                self._ended = True
                self._add([self._partial] if self._partial else [])
        elif descriptor == self._stdout:
            *lines, self._partial = (self._partial + chunk).split(b"\n")
            if len(self._partial) > LONGEST_LINE:
                lines, self._partial = [*lines, self._partial[:LONGEST_LINE]], b""
            self._add(lines)
        else:
            self._last.extend(line for line in chunk.splitlines()[-LINES_KEPT:] if line.strip())

    def _add(self, lines: list[bytes]) -> None:
        self._lines.extend(lines)
        self._last.extend(lines[-LINES_KEPT:])


def _text(line: bytes) -> str:
    return line.decode(errors="replace").strip()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with its children, and reap it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
