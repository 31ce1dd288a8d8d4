"""One game between two players, refereed: legal moves, clocks, and an end under the rules or by forfeit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ranks.chess.board import Result, move_name
from ranks.chess.match.openings import Opening
from ranks.chess.match.time_control import GameClock, TimeControl
from ranks.chess.players.player import Choice, Clock, Forfeit, Limits, Player
from ranks.chess.rating.crosstable import Points

SIDES = ("White", "Black")
MAX_PLIES = 1000
"""A game this long is a draw; under the rules of 50 moves and repetition only wanderers get there."""
REASONS = {
    "stalemate": "Draw by stalemate",
    "insufficient material": "Draw by insufficient mating material",
    "fifty moves": "Draw by fifty moves rule",
    "threefold repetition": "Draw by 3-fold repetition",
}
"""How a drawn game ended, in the words of cutechess."""
BRACES = str.maketrans("{}", "()")


@dataclass(frozen=True)
class Conditions:
    """What a move may cost: a time control, or limits that hold for every move."""

    time_control: TimeControl | None
    limits: Limits = field(default_factory=Limits)
    margin_s: float = 0.0
    """How much longer than its time a move may take."""

    @property
    def timed(self) -> bool:
        """Whether moves depend on how fast the machine is and what else it does."""
        return self.time_control is not None or self.limits.movetime_s is not None

    def __str__(self) -> str:
        if self.time_control:
            return str(self.time_control)
        words = {"nodes": self.limits.nodes, "depth": self.limits.depth, "movetime": self.limits.movetime_s}
        given = " ".join(f"{word} {value:g}" for word, value in words.items() if value is not None)
        return given or "each player's own limits"


class Seat(NamedTuple):
    """A player at the board."""

    name: str
    player: Player


@dataclass(frozen=True)
class Turn:
    """One move that a player chose, and what it said about it."""

    choice: Choice
    elapsed_s: float


@dataclass(frozen=True)
class GameRecord:
    """A finished game."""

    white: str
    black: str
    round: str
    """7.1 for the first game of the seventh pair."""
    opening: Opening
    turns: list[Turn]
    """From the end of the opening on."""
    result: Result
    reason: str
    """In the words of cutechess: White mates, Draw by 3-fold repetition, Black loses on time, ..."""
    forfeited: bool
    """Lost by the player's fault rather than on the board: time, an illegal move, a hang, a death."""

    @property
    def white_points(self) -> Points:
        """In halves: 0, 1 or 2."""
        return 2 if self.result == "1-0" else 0 if self.result == "0-1" else 1

    @property
    def loser(self) -> str | None:
        """Who lost."""
        return {0: self.white, 1: None, 2: self.black}[self.white_points]


class Abandoned(Exception):
    """The match was stopped in the middle of a game."""


def play_game(
    white: Seat,
    black: Seat,
    opening: Opening,
    conditions: Conditions,
    seed: int,
    round: str,
    stopping: Callable[[], bool],
    max_plies: int = MAX_PLIES,
) -> GameRecord:
    """Play one game. Raises Abandoned once `stopping()` is true, which also ends the search of a move."""
    board = opening.board()
    seats = (white, black)
    clock = GameClock(conditions.time_control, conditions.margin_s) if conditions.time_control else None
    turns: list[Turn] = []

    def ended(result: Result, reason: str, forfeited: bool = False) -> GameRecord:
        return GameRecord(white.name, black.name, round, opening, turns, result, reason, forfeited)

    def lost(side: int, reason: str) -> GameRecord:
        return ended("0-1" if side == 0 else "1-0", f"{SIDES[side]} {reason}", forfeited=True)

    for side, seat in enumerate(seats):
        try:
            seat.player.new_game(seed + side)
        except Forfeit as fault:
            return lost(side, forfeit_reason(fault))
    while True:
        outcome = board.outcome()
        if outcome:
            reason = REASONS.get(outcome.reason) or f"{SIDES[board.white_to_move]} mates"
            return ended(outcome.result, reason)
        if board.ply >= max_plies:
            return ended("1/2-1/2", f"Draw by length: {max_plies} plies")
        side = 0 if board.white_to_move else 1
        limits = _limits(conditions, clock, side, stopping)
        started_s = time.perf_counter()
        try:
            choice = seats[side].player.choose(board, limits)
        except Forfeit as fault:
            return lost(side, forfeit_reason(fault))
        elapsed_s = time.perf_counter() - started_s
        if stopping():
            raise Abandoned
        if clock and not clock.spend(side, elapsed_s):
            return lost(side, "loses on time")
        if choice.move not in board.legal_moves():
            return lost(side, f"makes an illegal move: {move_name(choice.move)}")
        turns.append(Turn(choice, elapsed_s))
        board.push(choice.move)


def forfeit_reason(fault: Forfeit) -> str:
    """What is said of a player that cannot go on, on one line that can stand in a comment of PGN."""
    return " ".join(f"forfeits: {fault}".translate(BRACES).split())


def _limits(conditions: Conditions, clock: GameClock | None, side: int, stopping: Callable[[], bool]) -> Limits:
    if clock is None:
        return replace(conditions.limits, grace_s=conditions.margin_s, should_stop=stopping)
    increment_s = clock.control.increment_s
    own_s, other_s = (max(clock.remaining_s[of], 0.0) for of in (side, 1 - side))
    clocks = Clock(own_s, other_s, increment_s, increment_s, clock.moves_to_go(side))
    return Limits(clock=clocks, grace_s=conditions.margin_s, should_stop=stopping)
