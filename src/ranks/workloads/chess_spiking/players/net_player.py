"""A net as a chess player: its policy alone, or in the tree search."""

from __future__ import annotations

import numpy as np
import torch

from ranks.chess.board import Board
from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.rules import CHESS
from ranks.chess.players.player import Choice, Limits
from ranks.chess.players.tree_search import SearchPlayer, centipawns
from ranks.search.config import SearchConfig
from ranks.search.evaluation import Evaluator, Leaves
from ranks.selfplay.net.net_evaluator import NetEvaluator
from ranks.selfplay.search_settings import match_search
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.players.saved_net import SavedNet

CPU = torch.device("cpu")


class NetPlayer(SearchPlayer):
    """Plays the move that the search with a net chooses.

    `weights_sha256`: what tells apart two states of a player with the same spec."""

    def __init__(self, name: str, evaluator: Evaluator, search: SearchConfig, weights_sha256: str) -> None:
        super().__init__(name, evaluator, search)
        self.weights_sha256 = weights_sha256


class PolicyPlayer:
    """Plays the legal move with the highest probability, without search. It ignores all limits and has
    no random choice."""

    def __init__(self, name: str, evaluator: Evaluator, weights_sha256: str) -> None:
        self.name, self.weights_sha256 = name, weights_sha256
        self._evaluator: Evaluator | None = evaluator

    def new_game(self, seed: int) -> None:
        pass

    def choose(self, board: Board, limits: Limits) -> Choice:
        assert self._evaluator is not None, f"{self.name} is closed"
        moves = board.legal_moves()
        board.outcome()  # counts the repetitions, which the net sees
        moves_1M = np.zeros((1, MAX_MOVES), np.uint16)
        moves_1M[0, : len(moves)] = moves
        evaluation = self._evaluator(Leaves(board.words[None].copy(), moves_1M, np.array([len(moves)], np.int32)))
        move = moves[int(evaluation.priors_BM[0, : len(moves)].argmax())]
        return Choice(move, centipawns(float(evaluation.value_B[0])), depth=1, nodes=1, pv=(move,))

    def close(self) -> None:
        self._evaluator = None


def net_player(name: str, saved: SavedNet, simulations: int) -> NetPlayer | PolicyPlayer:
    """A player with `simulations` for each move, or 0 for the policy alone. It runs on the CPU."""
    evaluator = NetEvaluator(saved.model, CHESS, encoding_of(saved.net, saved.seed), CPU)
    if simulations == 0:
        return PolicyPlayer(name, evaluator, saved.sha256)
    return NetPlayer(name, evaluator, match_search(saved.selfplay, simulations), saved.sha256)
