"""A player as a UCI engine.

This module imports nothing heavy, so `uciok` is sent at once while the player loads.

    reader thread     puts the lines of stdin into a queue
    loader thread     imports and compiles, creates the player, and waits for the end: an engine that the player has
                      started dies with this thread
    main thread       handles one command after the other; `isready`, `position` and `go` wait for the loader
    search thread     one for each `go`, until it has printed its bestmove

Only the main thread changes the state of the engine. All threads may print.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ranks.chess.uci.go import GoCommand
from ranks.chess.uci.options import Options
from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.chess.board import Board
    from ranks.chess.players.player import Player
    from ranks.chess.players.strength import Strength
    from ranks.chess.uci.search_thread import SearchThread

LONGEST_LINE = 1 << 20
"""The moves of a game of 6,000 moves take 32 KiB."""


class Engine:
    """Speaks UCI for one player."""

    def __init__(
        self,
        name: str,
        load: Callable[[], Player],
        write: Callable[[str], None],
        now: Callable[[], float] = time.perf_counter,
        strength: Strength | None = None,
    ) -> None:
        """`load` creates the player, in its own thread; `write` prints a line; `now` is the
        clock. `strength`: which nodes have which Elo, if that was measured."""
        self._name, self._load, self._write_line, self._now = name, load, write, now
        self._writing = threading.Lock()
        self._player: Player | None = None
        self._error: BaseException | None = None
        self._loaded, self._ended = threading.Event(), threading.Event()
        self._board: Board | None = None
        self._refused = False
        self._options = Options(strength)
        self._search: SearchThread | None = None
        self._num_games = 0
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def run(self, lines: Iterable[str]) -> None:
        """Handle commands until `quit` or the end of the lines, then close the player.

        Raises whatever the loader or a search raised."""
        threading.Thread(target=self._load_player, name="loader", daemon=True).start()
        threading.Thread(target=self._read, args=(lines,), name="reader", daemon=True).start()
        try:
            while (line := self._waiting.get()) is not None:
                if not self._handle(line.split()):
                    break
            self._stop()
            self._check()
        finally:
            if self._player is not None and not self.loading:
                self._player.close()
            self._ended.set()

    @property
    def loading(self) -> bool:
        """Whether the player is still being created."""
        return not self._loaded.is_set()

    def _handle(self, words: list[str]) -> bool:
        """Handle one line; False after `quit`.

        Unknown words before a command are ignored, as UCI demands."""
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
        self._write("id author the ranks developers")
        for line in self._options.lines():
            self._write(line)
        self._write("uciok")

    def _is_ready(self, rest: list[str]) -> None:
        self._wait()
        self._write("readyok")

    def _new_game(self, rest: list[str]) -> None:
        self._stop()
        self._num_games += 1
        self._wait().new_game(self._num_games)
        self._board, self._refused = None, False

    def _set_position(self, rest: list[str]) -> None:
        """Set the position.

        After an invalid one, `go` answers `bestmove 0000` until a valid one comes."""
        self._wait()
        from ranks.chess.board import Board

        setup, _, moves = " ".join(rest).partition("moves")
        kind, _, fen = setup.strip().partition(" ")
        try:
            if kind not in ("startpos", "fen"):
                raise ValueError("write position startpos or position fen ...")
            board = Board(fen.strip() if kind == "fen" else None)
            for text in moves.split():
                board.push(board.parse_uci(text))
        except (UserError, ValueError) as error:
            self._refused = True
            self._say(f"position refused: {error.found if isinstance(error, UserError) else error}")
        else:
            self._board, self._refused = board, False

    def _go(self, rest: list[str]) -> None:
        """Start a search. A running search is stopped first and prints its bestmove."""
        player = self._wait()
        self._stop()
        from ranks.chess.board import Board
        from ranks.chess.uci.search_thread import SearchThread

        board = (self._board or Board()).copy()
        go = GoCommand.parse(rest)
        searchmoves = self._parse_searchmoves(go, board, player)
        limits = replace(
            go.limits(board.white_to_move, self._options.number("Move Overhead") / 1000),
            searchmoves=searchmoves,
            multipv=self._options.number("MultiPV"),
            threads=self._options.number("Threads"),
            hash_mib=self._options.number("Hash"),
            now=self._now,
        )
        if self._options.limits_strength:
            limits = self._options.weakened(limits)
        if self._refused:
            self._say("no move: the position was refused")
        self._search = SearchThread(player, None if self._refused else board, limits, go.ponder, self._write, self._end)
        self._search.start()

    def _parse_searchmoves(self, go: GoCommand, board: Board, player: Player) -> tuple[int, ...]:
        """The legal ones of `go searchmoves`; () where all moves are to be searched."""
        from ranks.chess.players.player import UciSearcher

        if go.searchmoves is None:
            return ()
        if not isinstance(player, UciSearcher):
            self._say("searchmoves is not supported: all moves are searched")
            return ()
        moves: list[int] = []
        for text in go.searchmoves:
            try:
                moves.append(board.parse_uci(text))
            except ValueError as error:
                self._say(f"searchmoves: {error}")
        if not moves:
            self._say("searchmoves names no legal move: all moves are searched")
        return tuple(moves)

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
        name, _, value = (text.strip() for text in " ".join(rest).removeprefix("name ").partition(" value "))
        if self._options.is_button(name):
            self._clear_hash()
        elif refusal := self._options.change(name, value):
            self._say(f"option not changed: {refusal}")

    def _clear_hash(self) -> None:
        """Clear the table of the player. A running search is stopped first."""
        from ranks.chess.players.player import UciSearcher

        player = self._wait()
        self._stop()
        if isinstance(player, UciSearcher):
            player.clear_hash()
        else:
            self._say("Clear Hash: this player keeps no table from move to move")

    def _wait(self) -> Player:
        """Wait for the player. Raises the error of the loader, if there was one."""
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
        """Let the main thread end after the commands that it has received so far."""
        self._waiting.put(None)

    def _load_player(self) -> None:
        try:
            self._player = self._load()
            self._player.new_game(0)
        except BaseException as error:  # raised again in the main thread
            self._error = error
            self._end()
        finally:
            self._loaded.set()
        self._ended.wait()

    def _say(self, text: str) -> None:
        self._write(f"info string {text}")

    def _write(self, line: str) -> None:
        with self._writing:
            self._write_line(line)


def print_line(line: str) -> None:
    """Print to stdout and flush."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def read_lines(descriptor: int) -> Iterator[str]:
    """The lines of a file descriptor, read without stream locks, which would block the exit.

    What follows the first LONGEST_LINE bytes of a line is left out.
    """
    pending = b""
    while chunk := os.read(descriptor, 1 << 16):
        *lines, pending = (pending + chunk).split(b"\n")
        yield from (line[:LONGEST_LINE].decode(errors="replace") for line in lines)
        pending = pending[:LONGEST_LINE]
    if pending:
        yield pending.decode(errors="replace")
