"""Positions as a source gives them, and what all sources have in common.

Legend: N positions, 13 words of a position, M some of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ranks.chess.core.words import SIDE_WORD, WORDS
from ranks.workloads.chess_value.labels.label import NO_RESULT, NO_SCORE, SOURCES, Labelled


@dataclass(frozen=True)
class SourceOptions:
    """Which positions of files are used."""

    min_move: int = 10
    """PGN: the first move number whose position is used. Earlier ones are in every game."""
    full_weight_elo: float | None = 2400.0
    """PGN: a game whose players have this mean rating gives all its positions, one with 400 less gives half of them,
    and so on. None: all games give all."""
    unrated_elo: float = 1600.0
    """PGN: the rating of a player whose game does not say."""
    quiet: bool = True
    """Only positions without check and without a capture that wins material."""
    mirror: bool = False
    """Also each position with the files a to h as h to a, where no side may castle."""
    csv_side: Literal["white", "mover"] = "white"
    """CSV: for whom a positive score is good."""
    validation_share: float = 0.05
    """Of the games, and of the positions of CSV and EPD files."""
    seed: int = 0
    """Of the choice of positions by rating."""


class SourcedPositions(NamedTuple):
    """Positions with what their source says about them."""

    boards_N13: NDArray[np.uint64]
    cp_N: NDArray[np.int16]
    """For the side to move; NO_SCORE where the source has none."""
    result_N: NDArray[np.int8]
    """For the side to move, or NO_RESULT."""
    source_N: NDArray[np.int8]
    """Index in SOURCES."""
    validates_N: NDArray[np.bool_]
    """Which positions only validate: all those of some games."""

    @property
    def num_positions(self) -> int:
        """N."""
        return len(self.boards_N13)

    def take(self, index_M: NDArray[Any] | slice) -> SourcedPositions:
        """Some of the positions: int[M] indices, bool[N], or a slice."""
        boards_M13, cp_M, result_M = self.boards_N13[index_M], self.cp_N[index_M], self.result_N[index_M]
        return SourcedPositions(boards_M13, cp_M, result_M, self.source_N[index_M], self.validates_N[index_M])

    @property
    def labelled(self) -> Labelled:
        """Without the split."""
        return Labelled(self.boards_N13, self.cp_N, self.result_N, self.source_N)

    def split(self) -> tuple[Labelled, Labelled]:
        """Those that train, and those that validate."""
        return self.take(~self.validates_N).labelled, self.take(self.validates_N).labelled


def sourced(
    rows: Sequence[NDArray[np.uint64]] | NDArray[np.uint64],
    white_cp: Sequence[int | None],
    white_result: Sequence[int | None],
    source: str,
    validates: Sequence[bool],
) -> SourcedPositions:
    """Positions whose scores and results are given for white; None where unknown."""
    boards_N13 = np.array(rows, np.uint64).reshape(-1, WORDS)
    sign_N = for_white(boards_N13)
    cp_N = [NO_SCORE if cp is None else cp * sign for cp, sign in zip(white_cp, sign_N.tolist(), strict=True)]
    result_N = [NO_RESULT if r is None else r * sign for r, sign in zip(white_result, sign_N.tolist(), strict=True)]
    source_N = np.full(len(boards_N13), SOURCES.index(source), np.int8)
    return SourcedPositions(
        boards_N13, np.array(cp_N, np.int16), np.array(result_N, np.int8), source_N, np.array(validates, np.bool_)
    )


def for_white(boards_N13: NDArray[np.uint64]) -> NDArray[np.int64]:
    """int64[N]: 1 where white is to move, else -1."""
    return 1 - 2 * boards_N13[:, SIDE_WORD].astype(np.int64)


def joined(parts: Iterable[SourcedPositions]) -> SourcedPositions:
    """The positions of all parts, one after the other. A single part with positions is not copied."""
    some = [part for part in parts if part.num_positions]
    if len(some) == 1:
        return some[0]
    return SourcedPositions(*(np.concatenate(columns) for columns in zip(nothing(), *some, strict=True)))


def nothing() -> SourcedPositions:
    """No positions."""
    return sourced([], [], [], SOURCES[0], [])


def game_id(start: bytes, moves: Sequence[int]) -> int:
    """A hash of a game's start position and moves. A game that occurs in several files has one id."""
    digest = hashlib.blake2b(start, digest_size=8)
    digest.update(np.array(moves, np.uint16).tobytes())
    return int.from_bytes(digest.digest(), "little")


def is_validation(game: int, share: float) -> bool:
    """Whether a game only validates. It depends on its id alone: on no order, file or seed."""
    digest = hashlib.blake2b(game.to_bytes(8, "little"), digest_size=8, person=b"validation").digest()
    return int.from_bytes(digest, "little") < share * 2.0**64
