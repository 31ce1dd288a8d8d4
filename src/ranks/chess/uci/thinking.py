"""One search of a UCI engine, in a thread of its own: it ends with exactly one bestmove."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from ranks.chess.board import Board, move_name
from ranks.chess.players.player import Choice, Info, Limits, Player
from ranks.chess.players.time_plan import time_plan
from ranks.chess.uci.lines import format_info

NO_MOVE = "bestmove 0000"


class Thinking(threading.Thread):
    """One `go`: it searches, reports, and prints exactly one bestmove, when it may.

    Where there is nothing to search (no board, no legal move) it still waits for `stop` if that was agreed."""

    def __init__(
        self,
        player: Player,
        board: Board | None,
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
            answer = NO_MOVE if self._board is None else self._search(self._board)
            self._may_answer.wait()
            self._write(answer)
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
        self._pondering = False
        self._deadline_s = time.perf_counter() + time_plan(self._limits).enough_s
        if not self._limits.infinite:
            self._may_answer.set()

    def _search(self, board: Board) -> str:
        """The line that ends the search."""
        if not board.legal_moves():
            self._write(f"info depth 0 score {'mate' if board.in_check else 'cp'} 0")
            return NO_MOVE
        # while it ponders, the clock of the player does not run: `ponder_hit` sets the deadline
        limits = replace(
            self._limits,
            clock=None if self._pondering else self._limits.clock,
            movetime_s=None if self._pondering else self._limits.movetime_s,
            infinite=self._pondering or self._limits.infinite,
            should_stop=self._should_stop,
            on_info=self._report,
        )
        return best_move(self._player.choose(board, limits))

    def _should_stop(self) -> bool:
        return self._stopped.is_set() or (self._deadline_s is not None and time.perf_counter() >= self._deadline_s)

    def _report(self, info: Info) -> None:
        self._write(format_info(info, [move_name(move) for move in info.pv], several_lines=self._limits.num_lines > 1))


def best_move(choice: Choice) -> str:
    """The last line of a search; the reply that it expects may be pondered on."""
    ponder = f" ponder {move_name(choice.pv[1])}" if len(choice.pv) > 1 else ""
    return f"bestmove {move_name(choice.move)}{ponder}"
