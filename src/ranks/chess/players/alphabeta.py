"""Players that look ahead a number of plies: alpha-beta with captures played out, and plain minimax."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from ranks.chess.board import Board
from ranks.chess.core.alphabeta import go_on
from ranks.chess.core.alphabeta_tree import (
    ENTRY_BYTES,
    MATE,
    MATE_FLOOR,
    MAX_DEPTH,
    NODES,
    Tree,
    new_tree,
    set_root,
    start,
    with_table_of,
)
from ranks.chess.players.draws import shuffled
from ranks.chess.players.player import Choice, Info, Limits
from ranks.chess.players.time_plan import time_plan
from ranks.chess.players.words import nearest, no_options, number
from ranks.errors import UserError
from ranks.splitmix64 import GOLDEN_GAMMA

NODES_AT_ONCE = 2000
"""So often a search looks whether it has to stop."""
EVALUATIONS = ("material", "position")


class AlphaBetaPlayer:
    """Searches one ply deeper and deeper up to its depth, or the first limit. Equal moves are taken at random.

    The score at a depth is that of plain minimax. With one thread, a choice follows from the game, its seed and the
    limits alone: nothing is remembered from move to move. Further threads search the same moves in other orders and
    fill the same table (lazy SMP): of all that is found, they change only which of equal moves is chosen."""

    def __init__(self, name: str, depth: int, *, positional: bool, quiescence: bool) -> None:
        """`positional`: evaluation by piece-square tables too; `quiescence`: captures at the leaves are played out."""
        self.name, self.depth = name, depth
        self._style = (int(positional), int(quiescence))
        self._trees: list[Tree] = [new_tree()]
        self._seed = self._searches = 0

    def new_game(self, seed: int) -> None:
        self._seed = seed

    def choose(self, board: Board, limits: Limits) -> Choice:
        began_s = time.perf_counter()
        plan = time_plan(limits)
        moves = shuffled(board.legal_moves(), self._seed, board.ply)
        trees = self._trees_for(limits.threads, limits.table_mib)
        self._searches += 1
        for tree in trees:
            set_root(tree, board.rows, self._searches * GOLDEN_GAMMA % 2**64)
        best = Choice(moves[0], pv=(moves[0],))
        for depth in range(1, min(self.depth, limits.depth or MAX_DEPTH) + 1):
            lines, finished = self._search_lines(trees, moves, depth, limits, began_s + plan.most_s)
            if lines:
                best = lines[0]
            if not finished:
                break
            elapsed_s = time.perf_counter() - began_s
            if limits.on_info:
                for rank, line in enumerate(lines, start=1):
                    nodes = lines[-1].nodes
                    limits.on_info(Info(depth, line.score_cp, line.mate_in, nodes, elapsed_s, line.pv, rank))
            proven = best.mate_in is not None and 2 * abs(best.mate_in) <= depth and limits.num_lines == 1
            forced = limits.clock is not None and len(moves) == 1
            if proven or forced or elapsed_s > plan.begin_s:
                break
            found = [line.move for line in lines]
            moves = found + [move for move in moves if move not in found]
        return best

    def close(self) -> None:
        self._trees = []

    def _trees_for(self, threads: int, table_mib: int) -> list[Tree]:
        """One for each thread; the first is the one that counts. A table is the largest power of two that fits."""
        assert self._trees, f"{self.name} is closed"
        table_bits = (table_mib * 2**20 // ENTRY_BYTES).bit_length() - 1
        if len(self._trees[0].table_keys) != 1 << table_bits:
            self._trees = [new_tree(table_bits)]
        self._trees += [with_table_of(self._trees[0]) for _ in range(threads - len(self._trees))]
        return self._trees[:threads]

    def _search_lines(
        self, trees: Sequence[Tree], moves: list[int], depth: int, limits: Limits, deadline_s: float
    ) -> tuple[list[Choice], bool]:
        """The best lines at one depth, best first; False and what is known of them where a limit came in between."""
        lines: list[Choice] = []
        rest, finished = moves, True
        while rest and len(lines) < max(limits.num_lines, 1):
            for order, tree in enumerate(trees):
                start(tree, rest if order == 0 else [rest[0], *shuffled(rest[1:], self._seed, -order)], depth)
            finished = self._run(trees, limits, deadline_s)
            if trees[0].best_move[0]:
                lines.append(_read(trees, depth))
            if not finished:
                break
            rest = [move for move in rest if move != lines[-1].move]
        return lines, finished

    def _run(self, trees: Sequence[Tree], limits: Limits, deadline_s: float) -> bool:
        """Search until the root of the first tree is settled; False where a limit came first."""
        done = threading.Event()
        assistants = [threading.Thread(target=self._assist, args=(tree, done)) for tree in trees[1:]]
        for assistant in assistants:
            assistant.start()
        try:
            return self._run_first(trees[0], limits, deadline_s)
        finally:
            done.set()
            for assistant in assistants:
                assistant.join()

    def _run_first(self, tree: Tree, limits: Limits, deadline_s: float) -> bool:
        most_nodes = limits.nodes or 1 << 62
        while not go_on(tree, *self._style, min(int(tree.state[NODES]) + NODES_AT_ONCE, most_nodes)):
            stopped = limits.should_stop is not None and limits.should_stop()
            if stopped or tree.state[NODES] >= most_nodes or time.perf_counter() >= deadline_s:
                return False
        return True

    def _assist(self, tree: Tree, done: threading.Event) -> None:
        """Fill the table until the first tree is settled."""
        while not done.is_set() and not go_on(tree, *self._style, int(tree.state[NODES]) + NODES_AT_ONCE):
            pass


def _read(trees: Sequence[Tree], depth: int) -> Choice:
    """What the root of the first tree knows, and the nodes of all."""
    tree = trees[0]
    value, move = int(tree.best[0]), int(tree.best_move[0])
    pv = tuple(tree.pv[0, : tree.pv_length[0]].tolist())
    mate_in = None
    if abs(value) > MATE_FLOOR:
        moves = (MATE - abs(value) + 1) // 2
        mate_in = moves if value > 0 else -moves
    nodes = sum(int(each.state[NODES]) for each in trees)
    return Choice(move, None if mate_in else value, mate_in, depth, nodes, pv)


def alphabeta_player(word: str, argument: str | None, options: Mapping[str, str]) -> AlphaBetaPlayer:
    """`alphabeta:DEPTH[?evaluation=material|position]`: material alone is the default."""
    depth = number(word, argument, 1, MAX_DEPTH, "alphabeta:DEPTH, such as alphabeta:3")
    for option in options:
        if option != "evaluation":
            do = nearest(option, ["evaluation"], "its option is evaluation=material or evaluation=position")
            raise UserError(f"the player '{word}'", f"alphabeta has no option '{option}'", do)
    evaluation = options.get("evaluation", "material")
    if evaluation not in EVALUATIONS:
        do = nearest(evaluation, EVALUATIONS, "write evaluation=material or evaluation=position")
        raise UserError(f"the player '{word}'", f"there is no evaluation '{evaluation}'", do)
    return AlphaBetaPlayer(word, depth, positional=evaluation == "position", quiescence=True)


def minimax_player(word: str, argument: str | None, options: Mapping[str, str]) -> AlphaBetaPlayer:
    """`minimax:DEPTH`: piece-square tables, all moves to the depth and nothing beyond."""
    no_options(word, options)
    depth = number(word, argument, 1, MAX_DEPTH, "minimax:DEPTH, such as minimax:2")
    return AlphaBetaPlayer(word, depth, positional=True, quiescence=False)
