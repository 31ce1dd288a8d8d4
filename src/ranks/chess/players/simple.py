"""The simplest players: random moves, and the best material after one move."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ranks.chess.board import Board
from ranks.chess.core.evaluation import evaluations
from ranks.chess.players.player import Choice, Limits
from ranks.chess.players.rng import shuffled
from ranks.chess.players.spec import no_argument, no_options


class RandomPlayer:
    """Plays a uniformly random legal move."""

    def __init__(self, name: str = "random") -> None:
        self.name = name
        self._seed = 0

    def new_game(self, seed: int) -> None:
        self._seed = seed

    def choose(self, board: Board, limits: Limits) -> Choice:
        move = shuffled(board.legal_moves(), self._seed, board.ply)[0]
        return Choice(move, pv=(move,))

    def close(self) -> None:
        pass


class GreedyPlayer:
    """Plays a mate, else the move with the best material afterwards; ties are broken at random."""

    def __init__(self, name: str = "greedy") -> None:
        self.name = name
        self._seed = 0

    def new_game(self, seed: int) -> None:
        self._seed = seed

    def choose(self, board: Board, limits: Limits) -> Choice:
        after = board.copy()
        best: Choice | None = None
        moves = shuffled(board.legal_moves(), self._seed, board.ply)
        for move in moves:
            after.push(move)
            outcome = after.outcome()
            score_cp = 0 if outcome else _mover_score_cp(after)
            after.pop()
            if outcome and outcome.reason == "checkmate":
                return Choice(move, mate_in=1, depth=1, nodes=len(moves), pv=(move,))
            if best is None or best.score_cp is None or score_cp > best.score_cp:
                best = Choice(move, score_cp, depth=1, nodes=len(moves), pv=(move,))
        assert best is not None
        return best

    def close(self) -> None:
        pass


def _mover_score_cp(board: Board) -> int:
    """Material in centipawns for the side that has just moved."""
    scores_cp = np.zeros(1, np.int64)
    evaluations(board.rows[-1:], 0, scores_cp)
    return -int(scores_cp[0])


def random_player(spec: str, argument: str | None, options: Mapping[str, str]) -> RandomPlayer:
    """`random`."""
    no_argument(spec, argument)
    no_options(spec, options)
    return RandomPlayer(spec)


def greedy_player(spec: str, argument: str | None, options: Mapping[str, str]) -> GreedyPlayer:
    """`greedy`."""
    no_argument(spec, argument)
    no_options(spec, options)
    return GreedyPlayer(spec)
