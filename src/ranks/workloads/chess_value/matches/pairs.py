"""Pairs of games inside training: one opening, first with white, then with black, spread over the ranks.

Every player has fixed limits and a cleared table, so a pair is a function of its players, opening and seed.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ranks.chess.match.game import Abandoned, Conditions, GameRecord, play_game
from ranks.chess.match.game import Side as MatchSide
from ranks.chess.match.net_rating import NET, Pair
from ranks.chess.match.openings import Opening, seeded_openings
from ranks.chess.players.player import Limits, Player
from ranks.errors import UserError
from ranks.workloads.chess_value.tasks.pool import TaskPool
from ranks.workloads.chess_value.tasks.worker import Interrupted


class PairPlan(NamedTuple):
    """One pair to play."""

    opponent: str
    opening: Opening
    seed: int


class PlayedPair(NamedTuple):
    """A pair of games, in half points of the net."""

    pair: Pair
    plies: int
    nodes: int
    """That the net searched."""
    other_nodes: int
    """That its opponent searched."""


@dataclass(frozen=True)
class Opponents:
    """How to open the net's player and its opponents, by their names in pairs."""

    open_player: Mapping[str, Callable[[], Player]]
    max_plies: int
    in_processes: bool = False
    """Whether other processes can open them."""


def play_all(plans: Sequence[PairPlan], opponents: Opponents, pool: TaskPool) -> list[PlayedPair]:
    """The pairs in their order, on every rank. Every rank calls it. Raises Stopped if a stop was requested."""
    make_worker = functools.partial(PairWorker, plans, opponents)
    return pool.map("matches", len(plans), make_worker, in_processes=opponents.in_processes)


class PairWorker:
    """Plays pairs, one after the other, with players of its own."""

    def __init__(self, plans: Sequence[PairPlan], opponents: Opponents) -> None:
        self._plans, self._opponents = plans, opponents
        self._players: dict[str, Player] = {}

    def run(self, task: int, stopping: Callable[[], bool]) -> PlayedPair:
        plan = self._plans[task]
        games = self._games(task, stopping)
        if any(game.forfeited for game in games):  # no result of the net: with new players once more
            self.close()
            games = self._games(task, stopping)
        reason = next((game.reason for game in games if game.forfeited), None)
        if reason is not None:
            do = "start the engine by hand: type its name, then uci; or give another one"
            raise UserError(f"games with {plan.opponent}", f"one ended twice without a result: {reason}", do)
        points = games[0].white_points, 2 - games[1].white_points
        nodes, other_nodes = (
            sum(_nodes(game, colour) for game, colour in zip(games, colours, strict=True))
            for colours in ((0, 1), (1, 0))
        )
        plies = sum(len(game.turns) for game in games)
        return PlayedPair(Pair(plan.opponent, *points), plies, nodes, other_nodes)  # pyright: ignore[reportArgumentType]

    def _games(self, task: int, stopping: Callable[[], bool]) -> list[GameRecord]:
        """Both games of a pair."""
        plan = self._plans[task]
        net, other = (MatchSide(name, self._player(name)) for name in (NET, plan.opponent))
        games: list[GameRecord] = []
        for number, sides in enumerate(((net, other), (other, net))):
            conditions = Conditions(None, Limits())
            name = f"{task}.{number}"
            try:
                game = play_game(
                    *sides, plan.opening, conditions, plan.seed + 2 * number, name, stopping, self._opponents.max_plies
                )
            except Abandoned:
                raise Interrupted from None
            games.append(game)
        return games

    def close(self) -> None:
        for player in self._players.values():
            player.close()
        self._players.clear()

    def _player(self, name: str) -> Player:
        if name not in self._players:
            self._players[name] = self._opponents.open_player[name]()
        return self._players[name]


def _nodes(game: GameRecord, colour: int) -> int:
    """Nodes that one colour searched; openings have an even number of plies."""
    return sum(turn.choice.nodes for turn in game.turns[colour::2])


@functools.lru_cache(maxsize=4)
def openings(seed: int, count: int) -> tuple[Opening, ...]:
    """The first lines of `seeded_openings`."""
    return tuple(itertools.islice(seeded_openings(seed), count))
