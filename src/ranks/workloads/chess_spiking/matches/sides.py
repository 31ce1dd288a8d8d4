"""The sides of many games at once: a net with one search for all of them, or a fixed player.

Legend: G games of a side, P some of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ranks.chess.commands.players import make_player
from ranks.chess.core.rules import CHESS
from ranks.chess.match.openings import Opening
from ranks.chess.players.player import Limits
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.search.evaluation import Evaluator, Int64Array
from ranks.search.result import likeliest_moves
from ranks.search.search import Search
from ranks.workloads.chess_spiking.matches.plan import MatchConfig

Moves = NDArray[np.uint16]


class MatchSide(Protocol):
    """One player in G games, which have the numbers 0 to G - 1 here."""

    def choose(self, games_P: Int64Array) -> Moves:
        """A move in each of these games, where it is this side's turn."""
        ...

    def push(self, games_P: Int64Array, moves_P: Moves) -> None:
        """These moves were played, by either side."""
        ...


class NetSide:
    """A net with tree search, or its policy alone. All its games are searched at the same time, so a batch has a leaf
    of each."""

    def __init__(self, evaluator: Evaluator, match: MatchConfig, openings: Sequence[Opening]) -> None:
        self.search = Search(CHESS, match.search, len(openings), groups=1)
        self._evaluator, self._simulations = evaluator, match.simulations
        for game, opening in enumerate(openings):
            assert opening.fen is None
            self.search.set_root(game, game, opening.moves)

    def choose(self, games_P: Int64Array) -> Moves:
        self.search.begin(games_P, self._simulations)
        for _ in self.search.steps(self._evaluator):
            heartbeat.beat()
        result = self.search.result(games_P)
        return result.chosen_P if self._simulations else likeliest_moves(result)

    def push(self, games_P: Int64Array, moves_P: Moves) -> None:
        self.search.play(moves_P, games_P)


class FixedSide:
    """A player of `ranks chess` whose move depends on the board and a seed alone."""

    def __init__(self, word: str, seeds: Sequence[int], openings: Sequence[Opening]) -> None:
        self._player, self._seeds = make_player(word), seeds
        self._boards = [opening.board() for opening in openings]

    def choose(self, games_P: Int64Array) -> Moves:
        return np.array([self._choose(game) for game in games_P.tolist()], np.uint16)

    def _choose(self, game: int) -> int:
        self._player.new_game(self._seeds[game])
        return self._player.choose(self._boards[game], Limits()).move

    def push(self, games_P: Int64Array, moves_P: Moves) -> None:
        for game, move in zip(games_P.tolist(), moves_P.tolist(), strict=True):
            self._boards[game].push(move)
