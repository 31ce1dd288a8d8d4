"""Labels of a cycle's positions, part by part, so that a part trains while the next one is labelled.

Legend: N positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ranks.chess.board import Board
from ranks.chess.fen import format_fen
from ranks.chess.players.player import Choice, Limits, Player
from ranks.engine.distributed.world import World
from ranks.workloads.chess_value.games.positions import Found
from ranks.workloads.chess_value.games.spread import Interrupted, spread
from ranks.workloads.chess_value.labels.label import NO_RESULT, NO_SCORE, Labelled
from ranks.workloads.chess_value.players.net_player import OpenPlayer

MATE_CP = 10_000
"""The score of any mate. On the scale of win probabilities it is 1."""
POSITIONS_OF_A_TASK = 32


class LabelledPart(NamedTuple):
    """Some positions of a cycle with their labels."""

    train: Labelled
    validation: Labelled
    cached: int
    """Positions whose labels were computed before."""

    @property
    def positions(self) -> int:
        """For training and validation together."""
        return len(self.train.boards_N13) + len(self.validation.boards_N13)


class Labeller(Protocol):
    """Gives positions their labels."""

    def label(self, found: Found, parts: int, open_player: OpenPlayer) -> Iterator[LabelledPart]:
        """The positions in their order, cut into `parts`. Every rank calls it and gets the same.

        `open_player`: of the present net."""
        ...

    def close(self) -> None:
        """End all engines."""
        ...


def cut(found: Found, parts: int) -> Iterator[Found]:
    """Parts of almost equal size, in order; empty ones are left out."""
    for index in np.array_split(np.arange(found.count), parts):
        if len(index):
            yield found.take(index)


def labelled(found: Found, cp_N: NDArray[np.int16], cached: int) -> LabelledPart:
    """Split positions with their scores into those that train and those that validate."""
    everything = Labelled(found.boards_N13, cp_N, found.result_N, found.source_N)
    train, validation = (
        Labelled(*(column[mask_N] for column in everything)) for mask_N in (~found.validates_N, found.validates_N)
    )
    return LabelledPart(train, validation, cached)


class OutcomeLabels:
    """The results of the games alone. Positions without one are left out."""

    def label(self, found: Found, parts: int, open_player: OpenPlayer) -> Iterator[LabelledPart]:
        """See `Labeller`."""
        with_result = found.take(np.flatnonzero(found.result_N != NO_RESULT))
        for part in cut(with_result, parts):
            yield labelled(part, np.full(part.count, NO_SCORE, np.int16), cached=0)

    def close(self) -> None:
        """Nothing is open."""


class SearchLabels:
    """The scores of the net's own search, computed by the ranks."""

    def __init__(self, world: World, threads: int) -> None:
        self._world, self._threads = world, threads

    def label(self, found: Found, parts: int, open_player: OpenPlayer) -> Iterator[LabelledPart]:
        """See `Labeller`."""
        for part in cut(found, parts):
            tasks = [*cut(part, -(-part.count // POSITIONS_OF_A_TASK))]
            make_worker = SearchWorkers(tasks, open_player)
            scores = spread(len(tasks), make_worker, self._world, self._threads)
            yield labelled(part, np.concatenate(scores), cached=0)

    def close(self) -> None:
        """Nothing is open between two parts."""


class SearchWorkers:
    """Makes workers that score parts of positions with a player."""

    def __init__(self, tasks: list[Found], open_player: OpenPlayer) -> None:
        self.tasks, self.open_player = tasks, open_player

    def __call__(self) -> SearchWorker:
        return SearchWorker(self.tasks, self.open_player())


class SearchWorker:
    """Scores positions, each with a cleared table."""

    def __init__(self, tasks: list[Found], player: Player) -> None:
        self._tasks, self._player = tasks, player

    def run(self, task: int, stopping: Callable[[], bool]) -> NDArray[np.int16]:
        """int16[N]: the scores of a task's positions."""
        return np.array([self._score(words_13, stopping) for words_13 in self._tasks[task].boards_N13], np.int16)

    def close(self) -> None:
        self._player.close()

    def _score(self, words_13: NDArray[np.uint64], stopping: Callable[[], bool]) -> int:
        if stopping():
            raise Interrupted
        self._player.new_game(0)
        return score_of_choice(self._player.choose(Board(format_fen(words_13)), Limits()))


def score_of_choice(choice: Choice) -> int:
    """Centipawns for the side to move, at most MATE_CP."""
    if choice.mate_in is not None:
        return MATE_CP if choice.mate_in > 0 else -MATE_CP
    return max(-MATE_CP, min(MATE_CP, choice.score_cp or 0))
