"""What a player is: given a game and limits it chooses a move, and says what it thinks of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ranks.chess.board import Board

OVERHEAD_S = 0.03


class Forfeit(Exception):
    """A player cannot go on: its program hung, died, or moved illegally. The text says how, in one line."""

    def __init__(self, reason: str, output: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.output = tuple(output)
        """The last lines that the program wrote."""


@dataclass(frozen=True)
class Clock:
    """What stands on the two clocks when the player is asked."""

    remaining_s: float
    other_remaining_s: float
    increment_s: float = 0.0
    """Added after each move."""
    other_increment_s: float = 0.0
    moves_to_go: int | None = None
    """Moves until more time is given; None: the time is for the whole game."""
    overhead_s: float = OVERHEAD_S
    """What a move may lose on its way to whoever holds the clock."""


@dataclass(frozen=True)
class Info:
    """What a player thinks while it searches. Scores are for the side to move."""

    depth: int
    score_cp: int | None
    """Centipawns; None where there is a mate, or the player has no opinion."""
    mate_in: int | None
    """Moves to the mate: positive when the side to move gives it, negative when it gets it."""
    nodes: int
    elapsed_s: float
    pv: tuple[int, ...]
    """The moves that it expects, its own first."""
    line: int = 1
    """1 for the best line; more where several were asked for."""


@dataclass(frozen=True)
class Limits:
    """When a player has to move: at the first limit that it meets.

    A player's own limit (`alphabeta:3`: three plies) holds as well. Players that do not search ignore all of them."""

    nodes: int | None = None
    """Positions for alpha-beta, simulations for a tree search, what the program calls nodes for a UCI program."""
    depth: int | None = None
    movetime_s: float | None = None
    clock: Clock | None = None
    grace_s: float = 0.0
    """How late a move may come after its time, for who waits for it: nothing to plan with."""
    infinite: bool = False
    """Until `should_stop`, or as far as the player can go."""
    num_lines: int = 1
    """Best lines to report, for players that search."""
    threads: int = 1
    """Threads to search with, for players that can."""
    table_mib: int = 16
    """Memory for a transposition table, for players that have one."""
    should_stop: Callable[[], bool] | None = None
    """Asked many times a second; True ends the search with the best move so far."""
    on_info: Callable[[Info], None] | None = None
    """Called from within `choose`."""


@dataclass(frozen=True)
class Choice:
    """A move, with what the player thinks of it as far as it does; scores are for the side to move, as in `Info`."""

    move: int
    """from | to << 6 | promotion << 12."""
    score_cp: int | None = None
    mate_in: int | None = None
    depth: int = 0
    nodes: int = 0
    pv: tuple[int, ...] = ()
    """Begins with `move` where the player searches."""


class Player(Protocol):
    """One side of a game, any number of games one after the other. It is used from one thread at a time."""

    name: str
    """The word that made it, such as alphabeta:3."""

    def new_game(self, seed: int) -> None:
        """Forget the last game. All random choices follow from the seed and the position's ply."""
        ...

    def choose(self, board: Board, limits: Limits) -> Choice:
        """A legal move in a game that is not over. The board is left as it was. Raises Forfeit."""
        ...

    def close(self) -> None:
        """Let everything go: memory, processes. Nothing is called after it, but for `close` again."""
        ...
