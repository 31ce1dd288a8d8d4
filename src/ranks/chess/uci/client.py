"""A UCI engine as a child process, driven from the GUI's side of the protocol.

Whatever the engine does, `choose` returns or raises Forfeit within the time of `Timeouts`, and
`close` leaves no process behind.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import signal
import subprocess
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import IO, cast

from ranks.chess.board import Board, move_to_uci
from ranks.chess.fen import START_FEN, format_fen
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.chess.uci.go import go_command
from ranks.chess.uci.lines import Option, parse_info, parse_option
from ranks.chess.uci.timeouts import DEFAULT_TIMEOUTS, SearchDeadline, Timeouts

LONGEST_LINE = 1 << 16
LINES_KEPT = 10
POLL_S = 0.01


class UciClient:
    """A running engine.

    Only one thread uses a client; several threads may start clients at the same time."""

    def __init__(self, command: Sequence[str], timeouts: Timeouts = DEFAULT_TIMEOUTS) -> None:
        """Start the engine and wait for uciok. Raises Forfeit."""
        self._timeouts = timeouts
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # no Ctrl-C from our terminal; its children are killed with it
            )
        except OSError as error:
            raise Forfeit(f"cannot be started: {error.strerror}") from error
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._stdin = self._process.stdin
        self._lines: queue.Queue[str | None] = queue.Queue(10_000)
        self._last: deque[str] = deque(maxlen=LINES_KEPT)
        self._closed = threading.Event()
        self._readers = [
            threading.Thread(target=forward_lines, args=(self._process.stdout, self._last, self._lines, self._closed)),
            threading.Thread(target=forward_lines, args=(self._process.stderr, self._last, None, self._closed)),
        ]
        for reader in self._readers:
            reader.daemon = True
            reader.start()
        self._finalizer = weakref.finalize(self, _kill, self._process)
        self.name = os.path.basename(command[0])
        """Its `id name`."""
        self.options: dict[str, Option] = {}
        """Its options, by name in lower case."""
        self._shake_hands()

    def set_option(self, name: str, value: str) -> None:
        """Send `setoption`. The caller checks the name and value against `options`."""
        self._send(f"setoption name {name} value {value}" if value else f"setoption name {name}")

    def ready(self) -> None:
        """Send `isready` and wait for readyok. Raises Forfeit."""
        self._send("isready")
        self._wait_for("readyok", self._timeouts.ready_s)

    def new_game(self) -> None:
        """Send `ucinewgame`. Raises Forfeit."""
        self._send("ucinewgame")
        self.ready()

    def choose(self, board: Board, limits: Limits) -> Choice:
        """Ask for a move. Raises Forfeit if the engine hangs, dies, or moves illegally."""
        start_fen = format_fen(board.rows[0])
        start = "startpos" if start_fen == START_FEN else f"fen {start_fen}"
        moves = " ".join(map(move_to_uci, board.moves))
        self._forget_lines()
        self._send(f"position {start} moves {moves}" if moves else f"position {start}")
        self._send(go_command(limits, board.white_to_move))
        started_s = time.monotonic()
        deadline = SearchDeadline(self._timeouts, limits, started_s)
        stop_sent = False
        best = ""
        while True:
            now_s = time.monotonic()
            if not stop_sent and limits.should_stop is not None and limits.should_stop():
                self._send("stop")
                deadline.stop_sent(now_s)
                stop_sent = True
            if deadline.expired(now_s):
                raise self._forfeit(f"gave no move within {now_s - started_s:.1f} s")
            line = self._next_line(POLL_S)
            if line is None:
                continue
            deadline.line_received(time.monotonic())
            word, _, rest = line.partition(" ")
            if word == "bestmove":
                return self._read_best_move(board, rest, best)
            info = parse_info(rest, board if limits.on_info else None) if word == "info" else None
            if info is None:
                continue
            if info.multipv == 1:
                best = rest
            if limits.on_info:
                limits.on_info(info)

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def close(self) -> None:
        """Send `quit`, wait a moment, then kill the engine and its children."""
        if self._closed.is_set():
            return
        with contextlib.suppress(OSError, ValueError):
            self._stdin.write(b"quit\n")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(self._timeouts.quit_s)
        self.kill()

    def kill(self) -> None:
        """Kill the process at once and reap it."""
        self._closed.set()
        self._finalizer()
        for reader in self._readers:
            reader.join(1.0)

    def _shake_hands(self) -> None:
        self._send("uci")
        deadline_s = time.monotonic() + self._timeouts.start_s
        while (line := self._next_line(deadline_s - time.monotonic())) != "uciok":
            if line is None:
                raise self._forfeit(f"did not say uciok within {self._timeouts.start_s:g} s")
            if line.startswith("id name "):
                self.name = line.removeprefix("id name ").strip()
            option = parse_option(line)
            if option:
                self.options[option.name.lower()] = option

    def _wait_for(self, answer: str, seconds: float) -> None:
        deadline_s = time.monotonic() + seconds
        while (line := self._next_line(deadline_s - time.monotonic())) != answer:
            if line is None:
                raise self._forfeit(f"did not say {answer} within {seconds:g} s")

    def _read_best_move(self, board: Board, rest: str, best: str) -> Choice:
        """The move of a `bestmove` line, with the score of the last `info` line."""
        text = rest.partition(" ")[0]
        try:
            move = board.parse_uci(text)
        except ValueError:
            raise Forfeit(f"moved illegally: bestmove {text or '(nothing)'} in {board.fen()}", self._last) from None
        info = parse_info(best, board)
        if info is None:
            return Choice(move, pv=(move,))
        pv = info.pv if info.pv[:1] == (move,) else (move,)
        return Choice(move, info.score_cp, info.mate_in, info.depth, info.nodes, pv)

    def _send(self, line: str) -> None:
        try:
            self._stdin.write(line.encode() + b"\n")
        except (OSError, ValueError) as error:
            raise self._gone() from error

    def _next_line(self, seconds: float) -> str | None:
        """The next line, or None after a timeout. Raises Forfeit if there will be none."""
        if seconds <= 0:
            return None
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            return None
        if line is None:
            raise self._gone()
        return line

    def _forget_lines(self) -> None:
        """Drop the lines that the engine wrote since its last move."""
        with contextlib.suppress(queue.Empty):
            while self._lines.get_nowait() is not None:
                pass
            raise self._gone()

    def _gone(self) -> Forfeit:
        """The forfeit of an engine whose output has ended."""
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return self._forfeit("closed its output")
        return self._forfeit(f"died by {signal.Signals(-code).name}" if code < 0 else f"died with exit code {code}")

    def _forfeit(self, reason: str) -> Forfeit:
        """Kill the process. Returns the forfeit with the reason and the engine's last line."""
        self.kill()
        last = self._last[-1] if self._last else None
        return Forfeit(
            f"{reason}, after the line '{last[:80]}'" if last else f"{reason}, without any output", self._last
        )


def forward_lines(
    pipe: IO[bytes], last: deque[str], lines: queue.Queue[str | None] | None, closed: threading.Event
) -> None:
    """Forward the lines of a pipe to a queue, then None. Without a queue just drain the pipe."""
    with io.BufferedReader(cast(io.RawIOBase, pipe)) as stream:
        while raw := stream.readline(LONGEST_LINE):
            line = raw.decode(errors="replace").strip()
            last.append(line)
            while lines is not None and not closed.is_set():
                with contextlib.suppress(queue.Full):
                    lines.put(line, timeout=0.1)
                    break
    if lines is not None and not closed.is_set():
        with contextlib.suppress(queue.Full):
            lines.put(None, timeout=1.0)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with its children, and reap it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin:
        with contextlib.suppress(OSError):
            process.stdin.close()
