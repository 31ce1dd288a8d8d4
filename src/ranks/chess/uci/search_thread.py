"""One search of a UCI engine in its own thread. It prints exactly one bestmove."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from ranks.chess.board import Board, move_to_uci
from ranks.chess.players.player import Choice, Info, Limits, Player, PonderHit
from ranks.chess.players.time_plan import time_plan
from ranks.chess.uci.lines import format_info, format_progress

NO_MOVE = "bestmove 0000"


class SearchThread(threading.Thread):
    """One `go` command: search, report, and print one bestmove as soon as UCI allows it.

    During `go infinite` and `go ponder` a bestmove is allowed only after `stop` or `ponderhit`,
    even if there is nothing to search (no board, no legal move)."""

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
        self._hit: PonderHit | None = None
        self._pondering = ponder
        if not (ponder or limits.infinite):
            self._may_answer.set()

    def run(self) -> None:
        """The body of the thread."""
        try:
            answer = NO_MOVE if self._board is None else self._search(self._board)
            self._may_answer.wait()
            self._write(answer)
        except BaseException as error:  # raised again in the main thread
            self.error = error
            self._failed()

    def stop(self) -> None:
        """End the search as soon as possible."""
        self._stopped.set()
        self._may_answer.set()

    def ponder_hit(self) -> None:
        """The opponent played the expected move: the clock of the player runs from now on."""
        if not self._pondering:
            return
        self._pondering = False
        self._hit = PonderHit(self._limits.now(), self._limits)
        if not self._limits.infinite:
            self._may_answer.set()

    def _search(self, board: Board) -> str:
        """Search; returns the bestmove line."""
        if not board.legal_moves():
            self._write(f"info depth 0 score {'mate' if board.in_check else 'cp'} 0")
            return NO_MOVE
        pondering = self._pondering  # then the clock of the player does not run
        limits = replace(
            self._limits,
            clock=None if pondering else self._limits.clock,
            movetime_s=None if pondering else self._limits.movetime_s,
            infinite=pondering or self._limits.infinite,
            should_stop=self._should_stop,
            ponder_hit=(lambda: self._hit) if pondering else None,
            on_info=self._report,
            on_progress=self._report_progress,
            on_message=self._say,
        )
        return best_move(self._player.choose(board, limits))

    def _should_stop(self) -> bool:
        if self._stopped.is_set():
            return True
        hit = self._hit
        return hit is not None and hit.limits.now() >= hit.at_s + time_plan(hit.limits).enough_s

    def _say(self, text: str) -> None:
        self._write(f"info string {text}")

    def _report(self, info: Info) -> None:
        self._write(format_info(info, [move_to_uci(move) for move in info.pv], with_multipv=self._limits.multipv > 1))

    def _report_progress(self, nodes: int, elapsed_s: float) -> None:
        self._write(format_progress(nodes, elapsed_s))


def best_move(choice: Choice) -> str:
    """The bestmove line, with the expected reply as the move to ponder on."""
    ponder = f" ponder {move_to_uci(choice.pv[1])}" if len(choice.pv) > 1 else ""
    return f"bestmove {move_to_uci(choice.move)}{ponder}"
