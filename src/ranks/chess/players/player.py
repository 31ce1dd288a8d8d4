"""What a player is, what it may spend on a move, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ranks.chess.board import Board


@dataclass(frozen=True)
class Clock:
    """Both clocks of a game, in seconds."""

    white_s: float
    black_s: float
    white_increment_s: float = 0.0
    black_increment_s: float = 0.0
    moves_to_go: int | None = None
    """Until the side to move gets its time again; None: never."""


@dataclass(frozen=True)
class Limits:
    """What one move may cost; everything that is given holds, and nothing given means the player's own habit."""

    nodes: int | None = None
    depth: int | None = None
    movetime_s: float | None = None
    clock: Clock | None = None


@dataclass(frozen=True)
class Choice:
    """A move, and what the player knows about it. Unknown values are None."""

    move: int
    """from | to << 6 | promotion << 12."""
    score_cp: int | None = None
    """In centipawns, for the side to move."""
    depth: int | None = None
    nodes: int | None = None
    pv: tuple[int, ...] = ()
    """The line it expects, its own move first."""


class Player(Protocol):
    """Someone who can be asked for moves."""

    name: str

    def new_game(self, seed: int) -> None:
        """Forget the last game; all draws of the next one come from `seed`. Raises Forfeit where it does not answer."""
        ...

    def choose(self, board: Board, limits: Limits) -> Choice:
        """A move for the side to move. `board` is the player's to change. Raises Forfeit where none comes."""
        ...

    def close(self) -> None:
        """Let go of everything; a second call does nothing, and one during `choose` ends it soon."""
        ...


class Forfeit(Exception):
    """The player cannot go on with this game: it died, hangs, or said something that is no move."""

    def __init__(self, reason: str) -> None:
        """`reason` follows the player's colour: 'disconnects', 'gives no move for 10 s'."""
        super().__init__(reason)
        self.reason = reason
