"""A board: a position with the moves that led to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ranks.chess.core.rules import (
    CHECK,
    DRAW_KINDS,
    START,
    draw_kind,
    legal,
    legal_moves,
    play,
)
from ranks.chess.core.tables import Words
from ranks.chess.core.words import CLOCKS_WORD, KEY_WORD, WORDS
from ranks.chess.fen import format_fen, parse_fen, square_name
from ranks.search.game import LOST

Result = Literal["1-0", "0-1", "1/2-1/2"]
PROMOTIONS = ("", "n", "b", "r", "q")


@dataclass(frozen=True)
class Outcome:
    """How a game ended."""

    result: Result
    reason: str
    """checkmate, or one of DRAW_KINDS."""


class Board:
    """A position with its history, so that repetitions are detected.

    `rows[ply]` is the position after `ply` moves: uint64[plies + 1, 13], in the format of
    ranks.chess.core.words."""

    def __init__(self, fen: str | None = None) -> None:
        """Set up the initial position or that of a FEN.

        Raises UserError for an invalid position."""
        self._rows = np.empty((64, WORDS), np.uint64)
        self._keys = np.empty(64, np.uint64)
        self._rows[0] = START[0] if fen is None else parse_fen(fen)[0]
        self._keys[0] = self._rows[0, KEY_WORD]
        self._scratch = np.empty(512, np.uint16)
        self.moves: list[int] = []
        """The moves so far: from | to << 6 | promotion << 12."""

    @property
    def ply(self) -> int:
        """The number of moves made on this board."""
        return len(self.moves)

    @property
    def rows(self) -> Words:
        """uint64[plies + 1, 13]: all positions of the game, oldest first."""
        return self._rows[: self.ply + 1]

    @property
    def keys(self) -> Words:
        """uint64[plies + 1]: the Zobrist keys of all positions of the game."""
        return self._keys[: self.ply + 1]

    @property
    def words(self) -> Words:
        """uint64[13]: the current position."""
        return self._rows[self.ply]

    @property
    def white_to_move(self) -> bool:
        """Whether it is white's turn."""
        return not self.words[8]

    @property
    def halfmove_clock(self) -> int:
        """Half moves since the last capture or pawn move."""
        return int(self.words[CLOCKS_WORD]) & 0xFFFF

    @property
    def in_check(self) -> bool:
        """Whether the side to move is in check."""
        return legal(self._rows, self.ply, self._scratch, 0) >= CHECK

    def legal_moves(self) -> list[int]:
        """All legal moves. They are also listed if the game is a draw."""
        num_moves = legal(self._rows, self.ply, self._scratch, 0) % CHECK
        return self._scratch[:num_moves].tolist()

    def push(self, move: int) -> None:
        """Make a move. Raises ValueError if it is not legal."""
        if move not in self.legal_moves():
            raise ValueError(f"{move_to_uci(move)} is not legal in {self.fen()}")
        if self.ply + 1 == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
            self._keys = np.concatenate([self._keys, np.empty_like(self._keys)])
        play(self._rows, self.ply, self._rows, self.ply + 1, move)
        self.moves.append(move)
        self._keys[self.ply] = self._rows[self.ply, KEY_WORD]

    def pop(self) -> int:
        """Take back the last move and return it."""
        return self.moves.pop()

    def outcome(self) -> Outcome | None:
        """How the game ended, or None.

        A third repetition and the fifty-move rule end it without a claim."""
        value = legal_moves(self._rows, self.ply, self._keys, 0, self.ply, self._scratch, 0)
        if value > 0:
            return None
        if value == LOST:
            return Outcome("0-1" if self.white_to_move else "1-0", "checkmate")
        return Outcome("1/2-1/2", DRAW_KINDS[draw_kind(self.words)])

    def fen(self) -> str:
        """The FEN of the current position."""
        return format_fen(self.words)

    def copy(self) -> Board:
        """An independent copy."""
        other = Board.__new__(Board)
        other._rows, other._keys = self._rows.copy(), self._keys.copy()
        other._scratch, other.moves = np.empty(512, np.uint16), self.moves.copy()
        return other

    def parse_uci(self, text: str) -> int:
        """The legal move of UCI text, e.g. e2e4 or e7e8q. Raises ValueError."""
        for move in self.legal_moves():
            if move_to_uci(move) == text:
                return move
        raise ValueError(f"'{text}' is not a legal move in {self.fen()}")


def move_to_uci(move: int) -> str:
    """A move in UCI notation: e2e4, e7e8q, e1g1 for castling."""
    return square_name(move & 63) + square_name(move >> 6 & 63) + PROMOTIONS[move >> 12]
