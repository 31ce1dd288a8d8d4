"""Scores of the net's own search.

Legend: N positions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ranks.chess.board import Board
from ranks.chess.core.evaluation import LOGISTIC_CP as BASE_10_CP
from ranks.chess.engine.nnue.weights import OUTPUT_CP
from ranks.chess.fen import format_fen
from ranks.chess.players.player import Choice, Limits, Player
from ranks.chess.players.tree_search import SearchPlayer
from ranks.workloads.chess_value.labelling.labeller import LabelledPart, cut, labelled, unscored
from ranks.workloads.chess_value.labels.units import LOGISTIC_CP, clipped_cp
from ranks.workloads.chess_value.players.net_player import OpenPlayer
from ranks.workloads.chess_value.positions.sourced import SourcedPositions
from ranks.workloads.chess_value.tasks.pool import TaskPool
from ranks.workloads.chess_value.tasks.worker import Interrupted

TREE_CP = BASE_10_CP / math.log(10)
"""Centipawns of one logit in the scores of a tree search."""


class SearchLabels:
    """The scores of the net's own search, computed by the ranks."""

    identity = None

    def __init__(self, pool: TaskPool, *, in_processes: bool) -> None:
        """`in_processes`: other processes can open the net's player."""
        self._pool, self._in_processes = pool, in_processes

    def label(self, found: SourcedPositions, parts: int, open_player: OpenPlayer) -> Iterator[LabelledPart]:
        """See `Labeller`."""
        for part in cut(found, parts):
            wanted = part.take(unscored(part))
            make_worker = SearchWorkers(wanted.boards_N13, open_player)
            began_s = time.perf_counter()
            count = wanted.num_positions
            scores = self._pool.map("labels of a part", count, make_worker, in_processes=self._in_processes)
            scored = labelled(part, np.array(scores, np.int16))
            yield scored._replace(computed=wanted.num_positions, seconds=time.perf_counter() - began_s)

    def close(self) -> None:
        """Nothing is open between two parts."""


def label_cp(choice: Choice, player: Player) -> int:
    """The score of a search in the units of labels. A net that learned from scores in a larger unit would say more from
    cycle to cycle, in a smaller one less."""
    unit_cp = TREE_CP if isinstance(player, SearchPlayer) else OUTPUT_CP
    score_cp = None if choice.score_cp is None else round(choice.score_cp * LOGISTIC_CP / unit_cp)
    return clipped_cp(score_cp, choice.mate_in)


class SearchWorkers:
    """Makes workers that score positions with a player."""

    def __init__(self, boards_N13: NDArray[np.uint64], open_player: OpenPlayer) -> None:
        self.boards_N13, self.open_player = boards_N13, open_player

    def __call__(self) -> SearchWorker:
        return SearchWorker(self.boards_N13, self.open_player())


class SearchWorker:
    """Scores positions, each with a cleared table."""

    def __init__(self, boards_N13: NDArray[np.uint64], player: Player) -> None:
        self._boards_N13, self._player = boards_N13, player

    def run(self, task: int, stopping: Callable[[], bool]) -> int:
        """The score of one position, for the side to move."""
        if stopping():
            raise Interrupted
        self._player.new_game(0)
        choice = self._player.choose(Board(format_fen(self._boards_N13[task])), Limits())
        return label_cp(choice, self._player)

    def close(self) -> None:
        self._player.close()
