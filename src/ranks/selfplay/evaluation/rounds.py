"""Games with other players, spread over the ranks by their numbers and played in rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ranks.engine.distributed.poll_interval import PollInterval
from ranks.engine.distributed.world import World
from ranks.search.evaluation import BoolArray


class GamesInRounds(Protocol):
    """Games whose positions are evaluated in one batch."""

    def is_running(self) -> BoolArray:
        """[P]: which games are not over."""
        ...

    def play_round(self) -> None:
        """Make the next moves in the games that are not over."""
        ...


def games_of_batches(games: int, world: World) -> list[range]:
    """This rank's games, cut into those that are searched together: under --exact by shard, so that a batch
    is the same on any number of ranks."""
    parts = [ids for _, ids in world.shard_items(games)] if world.exact else [world.items(games)]
    return [ids for ids in parts if len(ids)]


def rows_of(searches: int) -> int:
    """The most rows of all batches that an evaluator makes for so many searches: their sizes are powers of two, and it
    keeps one batch of each size."""
    return 4 * searches


def play_rounds(batches: Sequence[GamesInRounds], label: str, world: World) -> None:
    """Play this rank's games until those of all ranks are over. `label`: of the progress bar.

    Every rank calls it. Raises Stopped inside a long iteration if a stop was requested.
    """
    games = sum(len(batch.is_running()) for batch in batches)
    poll = PollInterval(world.comm)
    # All ranks play the same number of rounds, so all of them poll in the same ones.
    while world.any(any(batch.is_running().any() for batch in batches)):
        for batch in batches:
            batch.play_round()
        ended = games - sum(int(batch.is_running().sum()) for batch in batches)
        world.session.progress(label, ended, games)
        if poll.due():
            world.check_stop()
