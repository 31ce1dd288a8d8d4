"""The player protocol: given a board and limits, a player chooses a move and reports its score."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from ranks.chess.board import Board

OVERHEAD_S = 0.03


class Forfeit(Exception):
    """A player cannot continue: its engine hung, died, or moved illegally.

    The text says how, in one line."""

    def __init__(self, reason: str, output: Sequence[str] = (), *, lost: bool = False) -> None:
        """`lost`: a signal ended or stopped the engine, so another one may do better."""
        super().__init__(reason)
        self.lost = lost
        self.reason = reason
        self.output = tuple(output)
        """The last lines that the engine wrote."""


@dataclass(frozen=True)
class Clock:
    """The two clocks of a game when a player is asked for a move."""

    remaining_s: float
    other_remaining_s: float
    increment_s: float = 0.0
    """Added after each move."""
    other_increment_s: float = 0.0
    moves_to_go: int | None = None
    """Moves to the next time control; None: the time is for the whole game."""
    overhead_s: float = OVERHEAD_S
    """Move overhead: the time that a move may lose between the player and the clock."""


@dataclass(frozen=True)
class Info:
    """A report during a search, as in a UCI `info` line. Scores are for the side to move."""

    depth: int
    score_cp: int | None
    """Centipawns; None if there is a mate, or if the player does not evaluate."""
    mate_in: int | None
    """Moves to mate: positive if the side to move mates, negative if it is mated."""
    nodes: int
    elapsed_s: float
    pv: tuple[int, ...]
    """The principal variation, starting with the player's own move."""
    multipv: int = 1
    """The rank of this line, 1 for the best."""
    is_lower_bound: bool = False
    """Whether the score may be higher: the search was interrupted before it knew."""


class PonderHit(NamedTuple):
    """The opponent has played the move that the player pondered on."""

    at_s: float
    """When, on the clock of the limits."""
    limits: Limits
    """Of the move from then on."""


@dataclass(frozen=True)
class Limits:
    """When a player has to move. The first limit that is reached ends the search.

    A player's own limit (`alphabeta:3`: three plies) also applies. Players that do not search
    ignore all limits."""

    nodes: int | None = None
    """Positions for alpha-beta, simulations for a tree search, `go nodes` for a UCI engine."""
    depth: int | None = None
    mate: int | None = None
    """End with a mate of the opponent in so many moves or fewer, for players that search without a fixed depth."""
    movetime_s: float | None = None
    clock: Clock | None = None
    time_margin_s: float = 0.0
    """How late a move may arrive. For the code that waits for it; a player must not plan with
    it."""
    infinite: bool = False
    """Search until `should_stop` returns True, or to the player's greatest depth."""
    searchmoves: tuple[int, ...] = ()
    """The only moves to be searched, for players that can (UciSearcher); () for all."""
    multipv: int = 1
    """Number of best lines to report, for players that search."""
    threads: int = 1
    """Search threads, for players that can use several."""
    hash_mib: int = 16
    """Size of the transposition table, for players that have one."""
    forget: bool = False
    """Forget everything before the move, with a table as `?nodes=N` has it, for players that keep a table."""
    should_stop: Callable[[], bool] | None = None
    """Called many times a second; True ends the search with the best move so far."""
    ponder_hit: Callable[[], PonderHit | None] | None = None
    """For a player that ponders: None until the opponent has moved. `should_stop` then ends the search in time, and a
    player may end it earlier."""
    on_info: Callable[[Info], None] | None = None
    """Called from within `choose`."""
    on_progress: Callable[[int, float], None] | None = None
    """Called from within `choose` with the nodes and the seconds so far, by players that may search for a long time
    between two calls of `on_info`."""
    on_message: Callable[[str], None] | None = None
    """Called from within `choose` with a sentence for the user."""
    now: Callable[[], float] = time.perf_counter
    """The clock, in seconds, that time limits are measured with."""


@dataclass(frozen=True)
class Choice:
    """A move with its score.

    The score fields are as in `Info`; players that do not evaluate leave them empty."""

    move: int
    """from | to << 6 | promotion << 12."""
    score_cp: int | None = None
    mate_in: int | None = None
    depth: int = 0
    nodes: int = 0
    pv: tuple[int, ...] = ()
    """Starts with `move` if the player searches."""
    is_lower_bound: bool = False


class Player(Protocol):
    """A player plays one side of any number of games, one after the other.

    Only one thread uses it at a time."""

    name: str
    """The spec that created it, e.g. alphabeta:3."""

    def new_game(self, seed: int) -> None:
        """Start a new game. All random choices are a function of the seed and the ply."""
        ...

    def choose(self, board: Board, limits: Limits) -> Choice:
        """Choose a legal move in a game that is not over.

        The board is not changed. Raises Forfeit."""
        ...

    def close(self) -> None:
        """Release memory and processes. Afterwards only `close` may be called again."""
        ...


@runtime_checkable
class UciSearcher(Player, Protocol):
    """A player that also obeys `go searchmoves` and the button Clear Hash of UCI."""

    def clear_hash(self) -> None:
        """Forget all that was learned in earlier searches."""
        ...
