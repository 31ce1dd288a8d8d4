"""A game as PGN holds it, and what is said of one that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ranks.chess.board import Board

Termination: TypeAlias = Literal["1-0", "0-1", "1/2-1/2", "*"]
TERMINATIONS: tuple[Termination, ...] = ("1-0", "0-1", "1/2-1/2", "*")
"""How the moves of a game end; * where the result is not known."""
ROSTER = {"Event": "?", "Site": "?", "Date": "????.??.??", "Round": "?", "White": "?", "Black": "?"}
"""The tags that every game has, and what they hold where nothing is known; the seventh is the result."""

ELSEWHERE = ("Result", "SetUp", "FEN")
"""Tags that other fields of a game hold."""


@dataclass(frozen=True)
class Game:
    """One game. Written and read again it is equal."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tags and their values, on one line each; without those of ELSEWHERE, and those of the roster that are
    unknown."""
    fen: str | None = None
    """Where the game starts; None: the initial position."""
    moves: tuple[int, ...] = ()
    """from | to << 6 | promotion << 12, each legal."""
    comments: Mapping[int, str] = field(default_factory=dict[int, str])
    """What is said after so many moves: words with one blank between them, without a closing brace."""
    result: Termination = "*"

    def board(self) -> Board:
        """The board after the last move."""
        board = Board(self.fen)
        for move in self.moves:
            board.push(move)
        return board


@dataclass(frozen=True)
class Damage:
    """Why a game was skipped."""

    path: str
    game: int
    """Its number in the file, from 1 on."""
    line: int
    """The line it begins on, from 1 on."""
    move: str | None
    """The move that is wrong, with its number: '12... Qxh7'; None where the damage is elsewhere."""
    reason: str

    def __str__(self) -> str:
        move = f", move {self.move}" if self.move else ""
        return f"{self.path}, game {self.game} (line {self.line}){move}: {self.reason}"
