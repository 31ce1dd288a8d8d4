"""Iterative deepening of one root: aspiration windows, several lines, several threads.

Each line is searched with a narrow window around its score at the depth before. A score outside of the window is
searched again with a wider one. More threads search the same root into the same transposition table, every other one
a ply deeper (lazy SMP); the first one gives the result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ranks.chess.core.alphabeta_state import MATE, MATE_FLOOR, UNKNOWN
from ranks.chess.engine.search import run_search
from ranks.chess.engine.state import EngineState, start
from ranks.chess.players.player import Choice

NODES_AT_ONCE = 2048
"""The search checks its limits after this many nodes."""
FIRST_WINDOW_CP, WIDEST_WINDOW_CP, WINDOW_DEPTH = 20, 700, 5


class Deepening:
    """The searches of one root, whose position is set in all states."""

    def __init__(
        self, states: Sequence[EngineState], moves: Sequence[int], lines: int, *, all_moves: bool, max_nodes: int
    ) -> None:
        """`moves`: to be searched, at least one; `lines`: how many of the best to find."""
        self.states, self.moves = states, list(moves)
        self.max_nodes = max_nodes
        self.best_share = 0.0
        """The share of the last iteration's nodes that were below its best move."""
        self._num_lines, self._all_moves = min(lines, len(moves)), all_moves
        self._scores_cp: list[int | None] = []

    @property
    def nodes(self) -> int:
        """Of all threads so far."""
        return sum(int(state.control["nodes"][0]) for state in self.states)

    def iterate(self, depth: int, stopped: Callable[[], bool]) -> tuple[list[Choice], bool]:
        """Search to a depth. Returns the best lines found, best first, and whether no limit interrupted the search."""
        first = self.states[0]
        first.root_nodes[self.moves] = 0
        lines: list[Choice] = []
        rest, finished = self.moves, True
        while len(lines) < self._num_lines and finished:
            guess_cp = self._scores_cp[len(lines)] if len(lines) < len(self._scores_cp) else None
            line, finished = self._search_line(rest, depth, guess_cp, stopped)
            if line is not None:
                lines.append(line)
                rest = [move for move in rest if move != line.move]
        lines.sort(key=score_of, reverse=True)  # a later search can find a better move
        if finished:
            found = [line.move for line in lines]
            self._scores_cp = [line.score_cp for line in lines]
            total = max(int(first.root_nodes[self.moves].sum()), 1)
            self.best_share = int(first.root_nodes[found[0]]) / total
            self.moves = found + sorted(rest, key=lambda move: -int(first.root_nodes[move]))
        return lines, finished

    def _search_line(
        self, moves: Sequence[int], depth: int, guess_cp: int | None, stopped: Callable[[], bool]
    ) -> tuple[Choice | None, bool]:
        """The best of some moves; None if the search was interrupted before it found one."""
        width_cp, alpha, beta = FIRST_WINDOW_CP, -UNKNOWN, UNKNOWN
        if guess_cp is not None and depth >= WINDOW_DEPTH:
            alpha, beta = guess_cp - width_cp, guess_cp + width_cp
        all_moves = self._all_moves and len(moves) == len(self.moves)
        failed_high: Choice | None = None
        while True:
            for number, state in enumerate(self.states):
                start(state, moves, depth + number % 2, alpha, beta, all_moves=all_moves)
            finished = self._run(stopped)
            root = self.states[0].frames[0]
            score = int(root["best"])
            if not finished:
                return (self._line(depth) if root["pv_length"] else failed_high), False
            if alpha < score < beta:
                return self._line(depth), True
            width_cp *= 2
            if width_cp > WIDEST_WINDOW_CP or abs(score) >= MATE_FLOOR:
                alpha, beta = -UNKNOWN, UNKNOWN
            elif score <= alpha:
                alpha, beta = score - width_cp, (alpha + beta) // 2
            else:
                failed_high = self._line(depth)
                best = int(root["best_move"])
                moves = [best, *(move for move in moves if move != best)]
                beta = score + width_cp

    def _line(self, depth: int) -> Choice:
        """The result of the first state."""
        state = self.states[0]
        root = state.frames[0]
        score = int(root["best"])
        pv = tuple(state.pv[0, : int(root["pv_length"])].tolist())
        mate_in = None
        if abs(score) > MATE_FLOOR:
            moves = (MATE - abs(score) + 1) // 2
            mate_in = moves if score > 0 else -moves
        return Choice(pv[0], None if mate_in else score, mate_in, depth, self.nodes, pv)

    def _run(self, stopped: Callable[[], bool]) -> bool:
        """Search until the first state is finished; False if a limit was reached first."""
        done = threading.Event()
        assistants = [threading.Thread(target=self._assist, args=(state, done)) for state in self.states[1:]]
        for assistant in assistants:
            assistant.start()
        try:
            return self._run_first(stopped)
        finally:
            done.set()
            for assistant in assistants:
                assistant.join()

    def _run_first(self, stopped: Callable[[], bool]) -> bool:
        while not self._step(self.states[0]):
            if self.nodes >= self.max_nodes or stopped():
                return False
        return True

    def _assist(self, state: EngineState, done: threading.Event) -> None:
        """Fill the shared table until the first thread is finished."""
        while not done.is_set() and self.nodes < self.max_nodes and not self._step(state):
            pass

    def _step(self, state: EngineState) -> bool:
        """Search some nodes, at most a thread's share of those that are left; True if the search is finished."""
        share = -(-max(self.max_nodes - self.nodes, 0) // len(self.states))
        return run_search(state, int(state.control["nodes"][0]) + min(NODES_AT_ONCE, share))


def score_of(line: Choice) -> int:
    """The score of a line in centipawns with mates: the shorter one of ours and the longer one against us is higher."""
    if line.mate_in is None:
        return line.score_cp or 0
    return MATE + 1 - 2 * line.mate_in if line.mate_in > 0 else -MATE - 2 * line.mate_in
