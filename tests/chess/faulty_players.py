"""Players that fail, named on the command line by a spec such as
tests.chess.faulty_players.forfeits."""

from __future__ import annotations

from collections.abc import Mapping

from ranks.chess.board import Board
from ranks.chess.players.player import Choice, Forfeit, Limits
from ranks.chess.players.simple import RandomPlayer
from ranks.chess.players.spec import no_options

PLAYERS = {"second-random": "tests.chess.faulty_players:random_with_argument"}
"""A table as a workload has one."""


class Forfeits(RandomPlayer):
    """Forfeits at its first move, or already at the start of a game."""

    closed = 0

    def __init__(self, name: str, at_start: bool) -> None:
        super().__init__(name)
        self.at_start = at_start

    def new_game(self, seed: int) -> None:
        if self.at_start:
            raise Forfeit("died with exit code 3")

    def choose(self, board: Board, limits: Limits) -> Choice:
        raise Forfeit("died with exit code 3")

    def close(self) -> None:
        Forfeits.closed += 1


def forfeits(spec: str, argument: str | None, options: Mapping[str, str]) -> Forfeits:
    return Forfeits(spec, at_start=argument == "start")


def random_with_argument(spec: str, argument: str | None, options: Mapping[str, str]) -> RandomPlayer:
    no_options(spec, options)
    return RandomPlayer(f"{spec} with {argument}")
