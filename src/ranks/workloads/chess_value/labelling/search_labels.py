"""Scores of the net's own search.

Legend: N positions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ranks.chess.board import Board
from ranks.chess.fen import format_fen
from ranks.chess.players.player import Limits, Player
from ranks.engine.distributed.world import World
from ranks.workloads.chess_value.games.spread import Interrupted, spread
from ranks.workloads.chess_value.labelling.labeller import LabelledPart, cut, labelled, unscored
from ranks.workloads.chess_value.labels.units import clipped_cp
from ranks.workloads.chess_value.players.net_player import OpenPlayer
from ranks.workloads.chess_value.positions.sourced import SourcedPositions

POSITIONS_OF_A_TASK = 32


class SearchLabels:
    """The scores of the net's own search, computed by the ranks."""

    identity = None

    def __init__(self, world: World, threads: int) -> None:
        self._world, self._threads = world, threads

    def label(self, found: SourcedPositions, parts: int, open_player: OpenPlayer) -> Iterator[LabelledPart]:
        """See `Labeller`."""
        for part in cut(found, parts):
            wanted = part.take(unscored(part))
            tasks = [*cut(wanted, -(-wanted.num_positions // POSITIONS_OF_A_TASK) or 1)]
            make_worker = SearchWorkers(tasks, open_player)
            began_s = time.perf_counter()
            scores = spread("labels of a part", len(tasks), make_worker, self._world, self._threads)
            scored = labelled(part, np.concatenate([np.zeros(0, np.int16), *scores]))
            yield scored._replace(computed=wanted.num_positions, seconds=time.perf_counter() - began_s)

    def close(self) -> None:
        """Nothing is open between two parts."""


class SearchWorkers:
    """Makes workers that score parts of positions with a player."""

    def __init__(self, tasks: list[SourcedPositions], open_player: OpenPlayer) -> None:
        self.tasks, self.open_player = tasks, open_player

    def __call__(self) -> SearchWorker:
        return SearchWorker(self.tasks, self.open_player())


class SearchWorker:
    """Scores positions, each with a cleared table."""

    def __init__(self, tasks: list[SourcedPositions], player: Player) -> None:
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
        choice = self._player.choose(Board(format_fen(words_13)), Limits())
        return clipped_cp(choice.score_cp, choice.mate_in)
