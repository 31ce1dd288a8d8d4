"""One game between two players: legal moves, clocks, and an end by the rules or by forfeit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ranks.chess.board import Result, move_to_uci
from ranks.chess.match import MAX_PLIES
from ranks.chess.match.openings import Opening
from ranks.chess.match.time_control import GameClock, TimeControl
from ranks.chess.players.player import Choice, Clock, Forfeit, Limits, Player
from ranks.rating.crosstable import Points

COLOURS = ("White", "Black")
REASONS = {
    "stalemate": "Draw by stalemate",
    "insufficient material": "Draw by insufficient mating material",
    "fifty moves": "Draw by fifty moves rule",
    "threefold repetition": "Draw by 3-fold repetition",
}
"""The reasons of a draw, as cutechess writes them."""
BRACES = str.maketrans("{}", "()")


@dataclass(frozen=True)
class Conditions:
    """The conditions of a game: a time control, or limits for every move."""

    time_control: TimeControl | None
    limits: Limits = field(default_factory=Limits)
    time_margin_s: float = 0.0
    """How far a clock may run below zero before the player loses on time (cutechess:
    timemargin)."""

    @property
    def timed(self) -> bool:
        """Whether moves depend on the speed and load of the machine."""
        return self.time_control is not None or self.limits.movetime_s is not None

    def __str__(self) -> str:
        if self.time_control:
            return str(self.time_control)
        words = {"nodes": self.limits.nodes, "depth": self.limits.depth, "movetime": self.limits.movetime_s}
        given = " ".join(f"{word} {value:g}" for word, value in words.items() if value is not None)
        return given or "each player's own limits"


class Side(NamedTuple):
    """One side of a game: the player and the name that is recorded."""

    name: str
    player: Player


@dataclass(frozen=True)
class Turn:
    """One move of a player, with its score and the time that it took."""

    choice: Choice
    elapsed_s: float


@dataclass(frozen=True)
class GameRecord:
    """A finished game."""

    white: str
    black: str
    round: str
    """The PGN tag Round: 7.1 is the first game of the seventh pair."""
    opening: Opening
    turns: list[Turn]
    """The moves after the opening."""
    result: Result
    reason: str
    """As cutechess writes it: White mates, Draw by 3-fold repetition, Black loses on time, ..."""
    forfeited: bool
    """Whether it was lost other than on the board: on time, by an illegal move, by an engine that
    hung or died."""

    @property
    def white_points(self) -> Points:
        """White's points in half points: 0, 1 or 2."""
        return 2 if self.result == "1-0" else 0 if self.result == "0-1" else 1

    @property
    def loser(self) -> str | None:
        """The name of the loser; None after a draw."""
        return {0: self.white, 1: None, 2: self.black}[self.white_points]


class Abandoned(Exception):
    """Raised when the match is stopped in the middle of a game."""


def play_game(
    white: Side,
    black: Side,
    opening: Opening,
    conditions: Conditions,
    seed: int,
    round: str,
    stopping: Callable[[], bool],
    max_plies: int = MAX_PLIES,
    now: Callable[[], float] = time.perf_counter,
) -> GameRecord:
    """Play one game. Raises Abandoned as soon as `stopping()` is true, which also ends a search.
    `now`: the clock, in s."""
    board = opening.board()
    sides = (white, black)
    clock = GameClock(conditions.time_control, conditions.time_margin_s) if conditions.time_control else None
    turns: list[Turn] = []

    def ended(result: Result, reason: str, forfeited: bool = False) -> GameRecord:
        return GameRecord(white.name, black.name, round, opening, turns, result, reason, forfeited)

    def lost(colour: int, reason: str) -> GameRecord:
        return ended("0-1" if colour == 0 else "1-0", f"{COLOURS[colour]} {reason}", forfeited=True)

    for colour, side in enumerate(sides):
        try:
            side.player.new_game(seed + colour)
        except Forfeit as fault:
            return lost(colour, forfeit_reason(fault))
    while True:
        outcome = board.outcome()
        if outcome:
            reason = REASONS.get(outcome.reason) or f"{COLOURS[board.white_to_move]} mates"
            return ended(outcome.result, reason)
        if board.ply >= max_plies:
            return ended("1/2-1/2", f"Draw by length: {max_plies} plies")
        colour = 0 if board.white_to_move else 1
        limits = _limits(conditions, clock, colour, stopping, now)
        started_s = now()
        try:
            choice = sides[colour].player.choose(board, limits)
        except Forfeit as fault:
            return lost(colour, forfeit_reason(fault))
        elapsed_s = now() - started_s
        if stopping():
            raise Abandoned
        if clock and not clock.spend(colour, elapsed_s):
            return lost(colour, "loses on time")
        if choice.move not in board.legal_moves():
            return lost(colour, f"makes an illegal move: {move_to_uci(choice.move)}")
        turns.append(Turn(choice, elapsed_s))
        board.push(choice.move)


def forfeit_reason(fault: Forfeit) -> str:
    """The reason of a forfeit as one line without braces, for a PGN comment."""
    return " ".join(f"forfeits: {fault}".translate(BRACES).split())


def _limits(
    conditions: Conditions, clock: GameClock | None, colour: int, stopping: Callable[[], bool], now: Callable[[], float]
) -> Limits:
    """The limits of one move."""
    limits = Limits() if clock else conditions.limits
    limits = replace(limits, time_margin_s=conditions.time_margin_s, should_stop=stopping, now=now)
    if clock is None:
        return limits
    increment_s = clock.control.increment_s
    own_s, other_s = (max(clock.remaining_s[of], 0.0) for of in (colour, 1 - colour))
    return replace(limits, clock=Clock(own_s, other_s, increment_s, increment_s, clock.moves_to_go(colour)))
