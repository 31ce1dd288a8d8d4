"""Players of fixed depth: alpha-beta with quiescence search, and plain minimax."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from ranks.chess.board import Board
from ranks.chess.core.alphabeta import run_search
from ranks.chess.core.alphabeta_state import (
    ENTRY_BYTES,
    MATE,
    MATE_FLOOR,
    MAX_DEPTH,
    NODES,
    SearchState,
    new_helper_state,
    new_state,
    set_root,
    start,
)
from ranks.chess.players.player import Choice, Info, Limits
from ranks.chess.players.rng import shuffled
from ranks.chess.players.spec import nearest, no_options, number
from ranks.chess.players.time_plan import time_plan
from ranks.errors import UserError
from ranks.splitmix64 import GOLDEN_GAMMA

NODES_AT_ONCE = 2000
"""The search checks its limits after this many nodes."""
EVALUATIONS = ("material", "position")


class AlphaBetaPlayer:
    """Iterative deepening up to its depth or the first limit.

    Ties between equal moves are broken at random.

    The score at a depth is that of plain minimax. With one thread, a move is a function of the
    game, its seed and the limits; nothing is kept from move to move. More threads search the same
    moves in other orders and share the transposition table (lazy SMP). They do not change scores,
    only which of several equal moves is chosen."""

    def __init__(self, name: str, depth: int, *, positional: bool, quiescence: bool) -> None:
        """`positional`: use piece-square tables; `quiescence`: search captures at the leaves."""
        self.name, self.depth = name, depth
        self._style = (int(positional), int(quiescence))
        self._states: list[SearchState] = [new_state()]
        self._seed = self._searches = 0

    def new_game(self, seed: int) -> None:
        self._seed = seed

    def choose(self, board: Board, limits: Limits) -> Choice:
        started_s = limits.now()
        plan = time_plan(limits)
        moves = shuffled(board.legal_moves(), self._seed, board.ply)
        states = self._states_for(limits.threads, limits.hash_mib)
        self._searches += 1
        for state in states:
            set_root(state, board.rows, self._searches * GOLDEN_GAMMA % 2**64)
        best = Choice(moves[0], pv=(moves[0],))
        mate_depth = 2 * limits.mate - 1 if limits.mate else MAX_DEPTH  # a search of all moves finds the mate there
        for depth in range(1, min(self.depth, limits.depth or MAX_DEPTH, mate_depth) + 1):
            lines, finished = self._search_lines(states, moves, depth, limits, started_s + plan.most_s)
            if lines:
                best = lines[0]
            if not finished:
                break
            elapsed_s = limits.now() - started_s
            if limits.on_info:
                for rank, line in enumerate(lines, start=1):
                    nodes = lines[-1].nodes
                    limits.on_info(Info(depth, line.score_cp, line.mate_in, nodes, elapsed_s, line.pv, rank))
            # stop early: a shorter mate is impossible, the only legal move, or no time for another
            # iteration
            proven = best.mate_in is not None and 2 * abs(best.mate_in) <= depth and limits.multipv == 1
            forced = limits.clock is not None and len(moves) == 1
            if proven or forced or elapsed_s > plan.deepen_s:
                break
            found = [line.move for line in lines]
            moves = found + [move for move in moves if move not in found]
        return best

    def close(self) -> None:
        self._states = []

    def _states_for(self, threads: int, hash_mib: int) -> list[SearchState]:
        """One state for each thread; the first one gives the result.

        The table has the largest power of two that fits."""
        assert self._states, f"{self.name} is closed"
        table_bits = (hash_mib * 2**20 // ENTRY_BYTES).bit_length() - 1
        if len(self._states[0].table_keys) != 1 << table_bits:
            self._states = [new_state(table_bits)]
        self._states += [new_helper_state(self._states[0]) for _ in range(threads - len(self._states))]
        return self._states[:threads]

    def _search_lines(
        self, states: Sequence[SearchState], moves: list[int], depth: int, limits: Limits, deadline_s: float
    ) -> tuple[list[Choice], bool]:
        """The best lines at one depth, best first, and whether no limit interrupted the search."""
        lines: list[Choice] = []
        rest, finished = moves, True
        while rest and len(lines) < max(limits.multipv, 1):
            for order, state in enumerate(states):
                start(state, rest if order == 0 else [rest[0], *shuffled(rest[1:], self._seed, -order)], depth)
            finished = self._run(states, limits, deadline_s)
            if states[0].best_move[0]:
                lines.append(_read(states, depth))
            if not finished:
                break
            rest = [move for move in rest if move != lines[-1].move]
        return lines, finished

    def _run(self, states: Sequence[SearchState], limits: Limits, deadline_s: float) -> bool:
        """Search until the first state is finished; False if a limit was reached first."""
        done = threading.Event()
        assistants = [threading.Thread(target=self._assist, args=(state, done)) for state in states[1:]]
        for assistant in assistants:
            assistant.start()
        try:
            return self._run_first(states[0], limits, deadline_s)
        finally:
            done.set()
            for assistant in assistants:
                assistant.join()

    def _run_first(self, state: SearchState, limits: Limits, deadline_s: float) -> bool:
        most_nodes = limits.nodes or 1 << 62
        while not run_search(state, *self._style, min(int(state.counters[NODES]) + NODES_AT_ONCE, most_nodes)):
            stopped = limits.should_stop is not None and limits.should_stop()
            if stopped or state.counters[NODES] >= most_nodes or limits.now() >= deadline_s:
                return False
        return True

    def _assist(self, state: SearchState, done: threading.Event) -> None:
        """Fill the shared table until the first thread is finished."""
        while not done.is_set() and not run_search(state, *self._style, int(state.counters[NODES]) + NODES_AT_ONCE):
            pass


def _read(states: Sequence[SearchState], depth: int) -> Choice:
    """The result of the first state, with the nodes of all states."""
    state = states[0]
    value, move = int(state.best[0]), int(state.best_move[0])
    pv = tuple(state.pv[0, : state.pv_length[0]].tolist())
    mate_in = None
    if abs(value) > MATE_FLOOR:
        moves = (MATE - abs(value) + 1) // 2
        mate_in = moves if value > 0 else -moves
    nodes = sum(int(each.counters[NODES]) for each in states)
    return Choice(move, None if mate_in else value, mate_in, depth, nodes, pv)


def alphabeta_player(spec: str, argument: str | None, options: Mapping[str, str]) -> AlphaBetaPlayer:
    """`alphabeta:DEPTH[?evaluation=material|position]`: material alone is the default."""
    depth = number(spec, argument, 1, MAX_DEPTH, "alphabeta:DEPTH, e.g. alphabeta:3")
    for option in options:
        if option != "evaluation":
            do = nearest(option, ["evaluation"], "its option is evaluation=material or evaluation=position")
            raise UserError(f"the player '{spec}'", f"alphabeta has no option '{option}'", do)
    evaluation = options.get("evaluation", "material")
    if evaluation not in EVALUATIONS:
        do = nearest(evaluation, EVALUATIONS, "write evaluation=material or evaluation=position")
        raise UserError(f"the player '{spec}'", f"there is no evaluation '{evaluation}'", do)
    return AlphaBetaPlayer(spec, depth, positional=evaluation == "position", quiescence=True)


def minimax_player(spec: str, argument: str | None, options: Mapping[str, str]) -> AlphaBetaPlayer:
    """`minimax:DEPTH`: piece-square tables, all moves to the depth and nothing beyond."""
    no_options(spec, options)
    depth = number(spec, argument, 1, MAX_DEPTH, "minimax:DEPTH, e.g. minimax:2")
    return AlphaBetaPlayer(spec, depth, positional=True, quiescence=False)
