"""Iterative deepening of one root: aspiration windows, several lines, several threads.

Each line is searched with a narrow window around its score at the depth before. A score outside of the window is
searched again with a wider one. More threads search the same root into the same transposition table (lazy SMP); the
first one gives the result:

    first thread    depth 1, depth 2, ...: windows, lines, limits
    helper threads  windows of their own, from the depth of the first thread on, every other one a ply deeper; each goes
                    on to the next depth by itself until the move is chosen
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ranks.chess.core.alphabeta_state import MATE, MATE_FLOOR, UNKNOWN
from ranks.chess.engine.search.search import run_search
from ranks.chess.engine.search.state import MAX_SEARCH_DEPTH, EngineState, start
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
        self._depth = 1
        """Of the present iteration."""
        self._num_lines, self._all_moves = min(lines, len(moves)), all_moves
        self._scores_cp: list[int | None] = []

    @property
    def nodes(self) -> int:
        """Of all threads so far."""
        return sum(int(state.control["nodes"][0]) for state in self.states)

    @contextmanager
    def helpers(self) -> Generator[None]:
        """Run the helper threads, one for each state but the first, inside this block. They have ended after it."""
        ended = threading.Event()
        threads: list[threading.Thread] = []
        try:
            for number in range(1, len(self.states)):
                thread = threading.Thread(target=self._help, args=(number, ended), name=f"helper {number}")
                thread.start()
                threads.append(thread)
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def iterate(self, depth: int, stopped: Callable[[], bool]) -> tuple[list[Choice], bool]:
        """Search to a depth. Returns the best lines found, best first, and whether no limit interrupted the search."""
        first, self._depth = self.states[0], depth
        first.root_nodes[self.moves] = 0
        lines: list[Choice] = []
        rest, finished = self.moves, True
        while len(lines) < self._num_lines and finished:
            guess_cp = self._scores_cp[len(lines)] if len(lines) < len(self._scores_cp) else None
            line, finished = self._search_line(first, rest, depth, guess_cp, stopped)
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
        self, state: EngineState, moves: Sequence[int], depth: int, guess_cp: int | None, stopped: Callable[[], bool]
    ) -> tuple[Choice | None, bool]:
        """The best of some moves, None if the search was interrupted before it found one, and whether it was not."""
        width_cp, alpha, beta = FIRST_WINDOW_CP, -UNKNOWN, UNKNOWN
        if guess_cp is not None and depth >= WINDOW_DEPTH:
            alpha, beta = guess_cp - width_cp, guess_cp + width_cp
        all_moves = self._all_moves and len(moves) == len(self.moves)
        failed_high: Choice | None = None
        while True:
            start(state, moves, depth, alpha, beta, all_moves=all_moves)
            finished = self._run(state, stopped)
            root = state.frames[0]
            score = int(root["best"])
            if not finished:
                return (self._line(state, depth) if root["pv_length"] else failed_high), False
            if alpha < score < beta:
                return self._line(state, depth), True
            width_cp *= 2
            if width_cp > WIDEST_WINDOW_CP or abs(score) >= MATE_FLOOR:
                alpha, beta = -UNKNOWN, UNKNOWN
            elif score <= alpha:
                alpha, beta = score - width_cp, (alpha + beta) // 2
            else:
                failed_high = replace(self._line(state, depth), is_lower_bound=True)
                best = int(root["best_move"])
                moves = [best, *(move for move in moves if move != best)]
                beta = score + width_cp

    def _line(self, state: EngineState, depth: int) -> Choice:
        """The result of a search."""
        root = state.frames[0]
        score = int(root["best"])
        pv = tuple(state.pv[0, : int(root["pv_length"])].tolist())
        mate_in = None
        if abs(score) > MATE_FLOOR:
            moves = (MATE - abs(score) + 1) // 2
            mate_in = moves if score > 0 else -moves
        return Choice(pv[0], None if mate_in else score, mate_in, depth, self.nodes, pv)

    def _run(self, state: EngineState, stopped: Callable[[], bool]) -> bool:
        """Search until the state is finished; False if a limit was reached first."""
        while not self._step(state):
            if self.nodes >= self.max_nodes or stopped():
                return False
        return True

    def _help(self, number: int, ended: threading.Event) -> None:
        """The body of a helper thread: fill the shared table until `ended` is set or all nodes are used."""
        state, depth, guess_cp = self.states[number], 0, None
        while depth < MAX_SEARCH_DEPTH:
            depth = max(depth + 1, min(self._depth + number % 2, MAX_SEARCH_DEPTH))
            line, finished = self._search_line(state, self.moves, depth, guess_cp, ended.is_set)
            if not finished:
                return
            guess_cp = None if line is None else line.score_cp

    def _step(self, state: EngineState) -> bool:
        """Search some nodes, at most a thread's share of those that are left; True if the search is finished."""
        share = -(-max(self.max_nodes - self.nodes, 0) // len(self.states))
        return run_search(state, int(state.control["nodes"][0]) + min(NODES_AT_ONCE, share))


def score_of(line: Choice) -> int:
    """The score of a line in centipawns with mates: the shorter one of ours and the longer one against us is higher."""
    if line.mate_in is None:
        return line.score_cp or 0
    return MATE + 1 - 2 * line.mate_in if line.mate_in > 0 else -MATE - 2 * line.mate_in
