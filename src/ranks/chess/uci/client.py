"""A UCI engine as a child process, driven from the GUI's side of the protocol.

Whatever the engine does, `choose` returns or raises Forfeit within the time of `Timeouts`, and
`close` leaves no process behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from ranks.chess.board import Board, move_to_uci
from ranks.chess.fen import START_FEN, format_fen
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.chess.uci.engine_process import EngineProcess, OutputEnded
from ranks.chess.uci.go import go_command
from ranks.chess.uci.lines import Option, parse_info, parse_option
from ranks.chess.uci.timeouts import DEFAULT_TIMEOUTS, SearchDeadline, Timeouts

T = TypeVar("T")

POLL_S = 0.01


class UciClient:
    """A running engine.

    Only one thread uses a client; several threads may start clients at the same time."""

    def __init__(
        self, command: Sequence[str], timeouts: Timeouts = DEFAULT_TIMEOUTS, *, dies_with_us: bool = False
    ) -> None:
        """Start the engine and wait for uciok. Raises Forfeit.

        dies_with_us: the kernel kills it when the thread that calls this ends or is killed (Linux)."""
        self._timeouts = timeouts
        try:
            self.process = EngineProcess(command, dies_with_us=dies_with_us)
        except OSError as error:
            raise Forfeit(f"cannot be started: {error.strerror}") from error
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
                raise self.forfeit(f"gave no move within {now_s - started_s:.1f} s")
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
        return self.process.alive

    def close(self) -> None:
        """Send `quit`, wait a moment, then kill the engine and its children."""
        if self.process.closed:
            return
        with contextlib.suppress(OSError):
            self.process.send("quit\n")
        self.process.ended_by(self._timeouts.quit_s)
        self.kill()

    def kill(self) -> None:
        """Kill the process at once and reap it."""
        self.process.kill()

    def forfeit(self, reason: str, *, killed: bool = False) -> Forfeit:
        """Kill the process. Returns the forfeit with the reason and the engine's last line. `killed`: a signal has
        ended it."""
        lost = killed or self.process.stopped
        self.kill()
        last = self.process.last_lines
        text = f"{reason}, after the line '{last[-1][:80]}'" if last else f"{reason}, without any output"
        return Forfeit(text, last, lost=lost)

    def gone(self) -> Forfeit:
        """The forfeit of an engine whose output has ended, with how it ended."""
        code = self.process.ended_by(1.0)
        if code is None:
            return self.forfeit("closed its output")
        if code >= 0:
            return self.forfeit(f"died with exit code {code}")
        return self.forfeit(f"died by {signal.Signals(-code).name}", killed=True)

    def _shake_hands(self) -> None:
        self._send("uci")
        deadline_s = time.monotonic() + self._timeouts.start_s
        while (line := self._next_line(deadline_s - time.monotonic())) != "uciok":
            if line is None:
                raise self.forfeit(f"did not say uciok within {self._timeouts.start_s:g} s")
            if line.startswith("id name "):
                self.name = line.removeprefix("id name ").strip()
            option = parse_option(line)
            if option:
                self.options[option.name.lower()] = option

    def _wait_for(self, answer: str, seconds: float) -> None:
        deadline_s = time.monotonic() + seconds
        while (line := self._next_line(deadline_s - time.monotonic())) != answer:
            if line is None:
                raise self.forfeit(f"did not say {answer} within {seconds:g} s")

    def _read_best_move(self, board: Board, rest: str, best: str) -> Choice:
        """The move of a `bestmove` line, with the score of the last `info` line."""
        text = rest.partition(" ")[0]
        try:
            move = board.parse_uci(text)
        except ValueError:
            raise Forfeit(
                f"moved illegally: bestmove {text or '(nothing)'} in {board.fen()}", self.process.last_lines
            ) from None
        info = parse_info(best, board)
        if info is None:
            return Choice(move, pv=(move,))
        pv = info.pv if info.pv[:1] == (move,) else (move,)
        return Choice(move, info.score_cp, info.mate_in, info.depth, info.nodes, pv)

    def _send(self, line: str) -> None:
        try:
            self.process.send(line + "\n")
        except OSError as error:
            raise self.gone() from error

    def _next_line(self, seconds: float) -> str | None:
        """The next line, or None after a timeout. Raises Forfeit if there will be none."""
        try:
            return self.process.next_line(seconds)
        except OutputEnded:
            raise self.gone() from None

    def _forget_lines(self) -> None:
        """Drop the lines that the engine wrote since its last move."""
        try:
            self.process.forget_lines()
        except OutputEnded:
            raise self.gone() from None


def start_again_if_lost(start: Callable[[], T]) -> T:
    """What `start` returns; where a signal ended or stopped its engine meanwhile, what it returns then. Raises
    Forfeit."""
    try:
        return start()
    except Forfeit as fault:
        if not fault.lost:
            raise
        return start()
