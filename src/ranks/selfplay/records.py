"""Moves of games with what the search said about them, as arrays.

Legend: P positions, E entries (the legal moves of all positions, one after the other), W words of a
packed position, N games.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHARE_ONE = 65_535
"""A policy target of 1, as a 16-bit number."""

FROM_MOVES = ("state_PW", "move_P", "outcome_P", "end_P", "legal_E")
"""The arrays of a replay part (`replay/part.py`) that follow from the moves alone: equal where the games are."""


@dataclass(frozen=True)
class Records:
    """The positions in which a move was played. About 220 bytes a position in chess."""

    game_P: NDArray[np.int64]
    """Ids of the games: `game_id`."""
    ply_P: NDArray[np.int32]
    """Moves played before, from 0."""
    iteration_P: NDArray[np.int32]
    """The iteration whose weights chose the move."""
    state_PW: NDArray[np.uint64]
    move_P: NDArray[np.uint16]
    """The move that was played."""
    full_P: NDArray[np.bool_]
    """Whether the search was a full one, so that its policy is a target."""
    value_P: NDArray[np.float32]
    """The root's value after the search, for the side to move."""
    kl_P: NDArray[np.float32]
    """KL(target || priors) in nats: by how much the search changed the net's policy."""
    num_moves_P: NDArray[np.uint16]
    """Legal moves, and so entries, of each position."""
    legal_E: NDArray[np.uint16]
    """The legal moves."""
    share_E: NDArray[np.uint16]
    """The policy target of each legal move, in parts of SHARE_ONE, rounded."""

    def __len__(self) -> int:
        return len(self.game_P)

    @classmethod
    def empty(cls, num_words: int) -> Records:
        """No positions, of a game with this many words."""
        arrays: dict[str, NDArray[Any]] = {name: np.zeros(0, dtype) for name, dtype in DTYPES.items()}
        arrays["state_PW"] = np.zeros((0, num_words), np.uint64)
        return cls(**arrays)

    @classmethod
    def cat(cls, parts: Sequence[Records]) -> Records:
        """The positions of one or more records, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in DTYPES})

    def select(self, index_P: NDArray[np.int64]) -> Records:
        """Some positions, in the order of the index."""
        end_P = self.num_moves_P.cumsum(dtype=np.int64)
        first_P = (end_P - self.num_moves_P)[index_P]
        entries_E = ragged(first_P, self.num_moves_P[index_P].astype(np.int64))
        rows = {name: getattr(self, name)[entries_E if name.endswith("_E") else index_P] for name in DTYPES}
        return Records(**rows)

    def order(self) -> NDArray[np.int64]:
        """The positions in the order of game ids, and in a game of plies."""
        return np.lexsort((self.ply_P, self.game_P))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


DTYPES: dict[str, Any] = {
    "game_P": np.int64,
    "ply_P": np.int32,
    "iteration_P": np.int32,
    "state_PW": np.uint64,
    "move_P": np.uint16,
    "full_P": np.bool_,
    "value_P": np.float32,
    "kl_P": np.float32,
    "num_moves_P": np.uint16,
    "legal_E": np.uint16,
    "share_E": np.uint16,
}


def ragged(first_P: NDArray[Any], count_P: NDArray[Any]) -> NDArray[np.int64]:
    """first, first + 1, ... first + count - 1 of each row, one row after the other."""
    end_P = count_P.cumsum()
    total = int(end_P[-1]) if len(end_P) else 0
    return np.arange(total) + np.repeat(first_P - (end_P - count_P), count_P)


def game_id(slot: Any, number: Any) -> Any:
    """The id of game `number` of a slot, both from 0."""
    return slot * 2**32 + number
