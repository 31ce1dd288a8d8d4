"""From the games of a cycle to positions that are worth a label.

Legend: N positions, 13 words of a position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ranks.chess.core.rules import KEY_WORD
from ranks.engine.sharding import rng
from ranks.workloads.chess_value.games.cycle_games import CycleGames
from ranks.workloads.chess_value.games.game import boards_of
from ranks.workloads.chess_value.labels.label import NO_RESULT, SOURCES

OWN, STOCKFISH = SOURCES.index("own"), SOURCES.index("stockfish")
SIDE = 8
"""The word that is 1 where black is to move."""


class Found(NamedTuple):
    """Positions without scores."""

    boards_N13: NDArray[np.uint64]
    result_N: NDArray[np.int8]
    """For the side to move, or NO_RESULT."""
    source_N: NDArray[np.int8]
    validates_N: NDArray[np.bool_]
    """Which positions only validate: all those of some games."""

    @property
    def count(self) -> int:
        """N."""
        return len(self.boards_N13)

    def first(self, most: int) -> Found:
        """At most so many positions, evenly spread over all of them."""
        if self.count <= most:
            return self
        return self.take(np.linspace(0, self.count - 1, most).astype(np.intp))

    def take(self, index_M: NDArray[np.intp]) -> Found:
        """Some of the positions, in this order."""
        return Found(*(column[index_M] for column in self))


def positions_of(played: CycleGames, seed: int, cycle: int, validation_share: float) -> Found:
    """All positions of the games, each once, in the order of games and plies. Every rank finds the same."""
    key, games = rng.key(seed, "value/validation", cycle), torch.arange(len(played.games))
    validates = (rng.uniform(key, games, 1)[:, 0] < validation_share).tolist()
    parts: list[Found] = []
    for number, game in enumerate(played.games):
        boards_P13 = boards_of(game.moves.tolist())
        sign_P = np.where(boards_P13[:, SIDE] == 0, 1, -1)
        result_P = np.full(len(sign_P), NO_RESULT) if game.result == NO_RESULT else game.result * sign_P
        source_P = np.full(len(sign_P), OWN if number < played.own else STOCKFISH, np.int8)
        parts.append(Found(boards_P13, result_P.astype(np.int8), source_P, np.full(len(sign_P), validates[number])))
    return unique(concatenate(parts))


def concatenate(parts: list[Found]) -> Found:
    """The positions of all parts, one after the other."""
    if not parts:
        empty = np.zeros(0, np.int8)
        return Found(np.zeros((0, 13), np.uint64), empty, empty, np.zeros(0, np.bool_))
    return Found(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def unique(found: Found) -> Found:
    """Each position once, by its Zobrist key, in the order of their first occurrence."""
    _, first = np.unique(found.boards_N13[:, KEY_WORD], return_index=True)
    return found.take(np.sort(first))
