"""chess-spiking as a chess player: its policy alone, or its net in the tree search."""

from __future__ import annotations

import numpy as np

from ranks.chess.board import Board
from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.players.player import Choice, Limits, Player
from ranks.chess.players.tree_search import SearchPlayer, centipawns
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Leaves
from ranks.workloads.chess_spiking.building import Net
from ranks.workloads.chess_spiking.config import NetConfig
from ranks.workloads.chess_spiking.evaluator import NetEvaluator


class PolicyPlayer:
    """Plays the legal move with the highest probability, without search. It ignores all limits and has
    no random choice."""

    def __init__(self, name: str, evaluator: NetEvaluator) -> None:
        self.name = name
        self._evaluator: NetEvaluator | None = evaluator

    def new_game(self, seed: int) -> None:
        pass

    def choose(self, board: Board, limits: Limits) -> Choice:
        assert self._evaluator is not None, f"{self.name} is closed"
        moves = board.legal_moves()
        moves_1M = np.zeros((1, MAX_MOVES), np.uint16)
        moves_1M[0, : len(moves)] = moves
        leaves = Leaves(board.words[None].copy(), moves_1M, np.array([len(moves)], np.int32))
        evaluation = self._evaluator(leaves)
        move = moves[int(evaluation.priors_BM[0, : len(moves)].argmax())]
        return Choice(move, centipawns(float(evaluation.value_B[0])), depth=1, nodes=1, pv=(move,))

    def close(self) -> None:
        self._evaluator = None


def net_player(name: str, model: Net, net: NetConfig, simulations: int) -> Player:
    """A player with `simulations` for each move, or 0 for the policy alone.

    Its search is Gumbel search without noise (Danihelka et al. 2022), so a position and its history
    always give the same move."""
    evaluator = NetEvaluator(model, net)
    if simulations == 0:
        return PolicyPlayer(name, evaluator)
    return SearchPlayer(name, evaluator, SearchConfig(simulations=simulations, root="gumbel", gumbel_scale=0.0))
