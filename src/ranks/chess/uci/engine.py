"""A player as a UCI engine. Nothing heavy is imported here, so `uciok` comes at once; the player loads meanwhile.

reader thread     lines of stdin, into a queue
loader thread     imports and compiles, then makes the player
main thread       one command after the other; `isready`, `position` and `go` wait for the loader
search thread     one for each `go`, until its bestmove is printed
"""

from __future__ import annotations

import itertools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ranks.chess.players.player import Clock, Info, Limits
from ranks.chess.uci.lines import Option, format_info
from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.chess.board import Board
    from ranks.chess.players.player import Choice, Player

OPTIONS = (
    Option("Threads", "spin", "1", 1, 256),
    Option("MultiPV", "spin", "1", 1, 218),
    Option("Move Overhead", "spin", "30", 0, 5000),
    Option("Ponder", "check", "false"),
)
NUMBERS = ("wtime", "btime", "winc", "binc", "movestogo", "movetime", "nodes", "depth", "mate")


@dataclass(frozen=True)
class Go:
    """A `go` line, read."""

    numbers: dict[str, int]
    infinite: bool
    ponder: bool

    @classmethod
    def parse(cls, words: Sequence[str]) -> Go:
        """Words that are not known, and numbers that are none, are passed over."""
        numbers: dict[str, int] = {}
        for word, value in itertools.pairwise(words):
            if word in NUMBERS and value.lstrip("-").isascii() and value.lstrip("-").isdecimal():
                numbers[word] = int(value)
        return cls(numbers, "infinite" in words, "ponder" in words)

    def limits(self, white_to_move: bool, overhead_s: float) -> Limits:
        """What it asks for; nothing at all means: as far as the player goes by itself."""
        n = self.numbers
        own, other = ("w", "b") if white_to_move else ("b", "w")
        clock = None
        if f"{own}time" in n:
            clock = Clock(
                n[f"{own}time"] / 1000,
                n.get(f"{other}time", n[f"{own}time"]) / 1000,
                max(n.get(f"{own}inc", 0), 0) / 1000,
                max(n.get(f"{other}inc", 0), 0) / 1000,
                n["movestogo"] if n.get("movestogo", 0) > 0 else None,
                overhead_s,
            )
        depths = [max(n["depth"], 1)] if "depth" in n else []
        depths += [max(2 * n["mate"] - 1, 1)] if "mate" in n else []
        return Limits(
            nodes=max(n["nodes"], 1) if "nodes" in n else None,
            depth=min(depths) if depths else None,
            movetime_s=max(n["movetime"], 1) / 1000 if "movetime" in n else None,
            clock=clock,
            infinite=self.infinite,
        )


class Engine:
    """Speaks UCI for one player."""

    def __init__(self, name: str, load: Callable[[], Player], write: Callable[[str], None]) -> None:
        """`load` makes the player, in a thread of its own; `write` prints one line and flushes it."""
        self._name, self._load, self._write_line = name, load, write
        self._writing = threading.Lock()
        self._player: Player | None = None
        self._error: BaseException | None = None
        self._loaded = threading.Event()
        self._board: Board | None = None
        self._options = {option.name.lower(): option.default for option in OPTIONS}
        self._search: Thinking | None = None
        self._num_games = 0
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def run(self, lines: Iterable[str]) -> None:
        """Carry out commands until `quit` or the end of the lines. Raises what the loader or a search raised."""
        threading.Thread(target=self._load_player, name="loader", daemon=True).start()
        threading.Thread(target=self._read, args=(lines,), name="reader", daemon=True).start()
        while (line := self._waiting.get()) is not None:
            if not self._obey(line.split()):
                break
        self._stop()
        if self._loaded.is_set():
            self._check()
            if self._player is not None:
                self._player.close()

    @property
    def loading(self) -> bool:
        """Whether the player is not there yet."""
        return not self._loaded.is_set()

    def _obey(self, words: list[str]) -> bool:
        """Carry out one line; False after `quit`. Unknown words at its start are passed over, as UCI asks."""
        commands: dict[str, Callable[[list[str]], None]] = {
            "uci": self._introduce,
            "isready": self._is_ready,
            "ucinewgame": self._new_game,
            "position": self._set_position,
            "go": self._go,
            "stop": lambda rest: self._stop(),
            "ponderhit": lambda rest: self._ponder_hit(),
            "setoption": self._set_option,
            "debug": lambda rest: None,
            "register": lambda rest: None,
        }
        for index, word in enumerate(words):
            if word == "quit":
                return False
            if word in commands:
                commands[word](words[index + 1 :])
                return True
        if words:
            self._say(f"unknown command: {' '.join(words)[:100]}")
        return True

    def _introduce(self, rest: list[str]) -> None:
        self._write(f"id name {self._name}")
        self._write("id author the ranks authors")
        for option in OPTIONS:
            self._write(option.line())
        self._write("uciok")

    def _is_ready(self, rest: list[str]) -> None:
        self._wait()
        self._write("readyok")

    def _new_game(self, rest: list[str]) -> None:
        self._stop()
        self._num_games += 1
        self._wait().new_game(self._num_games)
        self._board = None

    def _set_position(self, rest: list[str]) -> None:
        """Take the position, or leave the last one where it cannot be read."""
        self._wait()
        from ranks.chess.board import Board

        setup, _, moves = " ".join(rest).partition("moves")
        kind, _, fen = setup.strip().partition(" ")
        try:
            if kind not in ("startpos", "fen"):
                raise ValueError("write position startpos or position fen ...")
            board = Board(fen.strip() if kind == "fen" else None)
            for text in moves.split():
                board.push(board.parse_move(text))
        except UserError as error:
            self._say(f"position left as it was: {error.found}")
        except ValueError as error:
            self._say(f"position left as it was: {error}")
        else:
            self._board = board

    def _go(self, rest: list[str]) -> None:
        """Begin to search; a search under way is stopped first, and prints its bestmove."""
        player = self._wait()
        self._stop()
        from ranks.chess.board import Board

        board = (self._board or Board()).copy()
        go = Go.parse(rest)
        if "searchmoves" in rest:
            self._say("searchmoves is not known here: all moves are searched")
        limits = replace(
            go.limits(board.white_to_move, int(self._options["move overhead"]) / 1000),
            num_lines=int(self._options["multipv"]),
            threads=int(self._options["threads"]),
        )
        self._search = Thinking(player, board, limits, go.ponder, self._write, self._end)
        self._search.start()

    def _stop(self) -> None:
        if self._search is not None:
            self._search.stop()
            self._search.join()
            self._error, self._search = self._error or self._search.error, None
            self._check()

    def _ponder_hit(self) -> None:
        if self._search is not None:
            self._search.ponder_hit()

    def _set_option(self, rest: list[str]) -> None:
        name, _, value = " ".join(rest).removeprefix("name ").partition(" value ")
        known = {option.name.lower(): option for option in OPTIONS}.get(name.strip().lower())
        refusal = known.refusal(value.strip()) if known else f"no option '{name.strip()}'"
        if known is None or refusal:
            self._say(f"option left as it was: {refusal}")
        else:
            self._options[known.name.lower()] = value.strip()

    def _wait(self) -> Player:
        """The player, as soon as it is there. Raises what kept it from coming."""
        self._loaded.wait()
        self._check()
        assert self._player is not None
        return self._player

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _read(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._waiting.put(line)
        self._end()

    def _end(self) -> None:
        """Let the main thread end once it has carried out what was said so far."""
        self._waiting.put(None)

    def _load_player(self) -> None:
        try:
            self._player = self._load()
            self._player.new_game(0)
        except BaseException as error:  # it is raised again in the main thread
            self._error = error
            self._end()
        finally:
            self._loaded.set()

    def _say(self, text: str) -> None:
        self._write(f"info string {text}")

    def _write(self, line: str) -> None:
        with self._writing:
            self._write_line(line)


class Thinking(threading.Thread):
    """One `go`: it searches, reports, and prints exactly one bestmove, when it may."""

    def __init__(
        self,
        player: Player,
        board: Board,
        limits: Limits,
        ponder: bool,
        write: Callable[[str], None],
        failed: Callable[[], None],
    ) -> None:
        super().__init__(name="search", daemon=True)
        self.error: BaseException | None = None
        self._player, self._board, self._limits = player, board, limits
        self._write, self._failed = write, failed
        self._stopped = threading.Event()
        self._may_answer = threading.Event()
        self._deadline_s: float | None = None
        self._pondering = ponder
        if not (ponder or limits.infinite):
            self._may_answer.set()

    def run(self) -> None:
        """Called by `start`."""
        try:
            legal = self._board.legal_moves()
            if not legal:
                self._write("bestmove 0000")
                return
            # while it ponders, the clock of the player does not run: `ponder_hit` sets the deadline
            clock = None if self._pondering else self._limits.clock
            limits = replace(
                self._limits,
                clock=clock,
                movetime_s=None if self._pondering else self._limits.movetime_s,
                infinite=self._pondering or self._limits.infinite,
                should_stop=self._should_stop,
                on_info=self._report,
            )
            choice = self._player.choose(self._board, limits)
            self._may_answer.wait()
            self._write(best_move(choice))
        except BaseException as error:  # it is raised again in the main thread
            self.error = error
            self._failed()

    def stop(self) -> None:
        """End it as soon as may be."""
        self._stopped.set()
        self._may_answer.set()

    def ponder_hit(self) -> None:
        """The move it ponders on has been played: its time runs from now on."""
        if not self._pondering:
            return
        from ranks.chess.players.time_plan import time_plan

        self._pondering = False
        self._deadline_s = time.perf_counter() + time_plan(self._limits).enough_s
        if not self._limits.infinite:
            self._may_answer.set()

    def _should_stop(self) -> bool:
        return self._stopped.is_set() or (self._deadline_s is not None and time.perf_counter() >= self._deadline_s)

    def _report(self, info: Info) -> None:
        from ranks.chess.board import move_name

        self._write(format_info(info, [move_name(move) for move in info.pv], several_lines=self._limits.num_lines > 1))


def best_move(choice: Choice) -> str:
    """The last line of a search; the reply that it expects may be pondered on."""
    from ranks.chess.board import move_name

    ponder = f" ponder {move_name(choice.pv[1])}" if len(choice.pv) > 1 else ""
    return f"bestmove {move_name(choice.move)}{ponder}"


def print_line(line: str) -> None:
    """To stdout, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def lines_of(descriptor: int) -> Iterator[str]:
    """The lines of a file descriptor. No lock of Python's is held meanwhile, so that the interpreter can end."""
    pending = b""
    while chunk := os.read(descriptor, 1 << 16):
        *lines, pending = (pending + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
    if pending:
        yield pending.decode(errors="replace")
