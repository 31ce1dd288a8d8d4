"""A game in PGN, and the report of a game that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ranks.chess.board import Board

Termination: TypeAlias = Literal["1-0", "0-1", "1/2-1/2", "*"]
TERMINATIONS: tuple[Termination, ...] = ("1-0", "0-1", "1/2-1/2", "*")
"""The game termination markers; * means unknown."""
ROSTER = {"Event": "?", "Site": "?", "Date": "????.??.??", "Round": "?", "White": "?", "Black": "?"}
"""The seven tag roster without the result, and the value of each tag if unknown."""

OTHER_FIELDS = ("Result", "SetUp", "FEN")
"""Tags that have their own fields in `PgnGame`."""


@dataclass(frozen=True)
class PgnGame:
    """One game. A game without glyphs that is written and read again is equal."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tags and their values, without line breaks. Tags of OTHER_FIELDS and unknown tags of the
    roster are left out."""
    fen: str | None = None
    """The start position; None: the initial position."""
    moves: tuple[int, ...] = ()
    """from | to << 6 | promotion << 12, each legal."""
    comments: Mapping[int, str] = field(default_factory=dict[int, str])
    """Comments by the number of moves before them. Words are separated by single spaces; no closing
    braces."""
    result: Termination = "*"
    glyphs: Mapping[int, int] = field(default_factory=dict[int, int])
    """Numeric annotation glyphs by the number of moves before them, to write: 4 is ??. Reading leaves them out."""

    def board(self) -> Board:
        """The board after the last move."""
        board = Board(self.fen)
        for move in self.moves:
            board.push(move)
        return board


@dataclass(frozen=True)
class SkippedGame:
    """A game that could not be read, and why."""

    path: str
    game: int
    """Its number in the file, from 1."""
    line: int
    """The number of its first line, from 1."""
    move: str | None
    """The wrong move with its number: '12... Qxh7'; None if the error is elsewhere."""
    reason: str

    def __str__(self) -> str:
        move = f", move {self.move}" if self.move else ""
        return f"{self.path}, game {self.game} (line {self.line}){move}: {self.reason}"
