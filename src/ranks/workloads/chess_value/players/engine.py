"""Opens the alpha-beta engine with a net or with its tables."""

from __future__ import annotations

from ranks.chess.engine.nnue.weights import NnueWeights
from ranks.chess.players.alphabeta import AlphaBetaPlayer
from ranks.chess.players.player import Player

DEEPEST = 60


def open_engine(name: str, weights: NnueWeights | None) -> Player:
    """The engine with one thread."""
    return AlphaBetaPlayer(name, DEEPEST, positional=True, quiescence=True)
