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
from ranks.workloads.chess_value.labelling.labeller import LabelledPart, cut, labelled, unscored
from ranks.workloads.chess_value.labels.units import MATE_CP
from ranks.workloads.chess_value.players.net_player import OpenPlayer
from ranks.workloads.chess_value.players.score_units import label_cp
from ranks.workloads.chess_value.positions.sourced import SourcedPositions
from ranks.workloads.chess_value.tasks.pool import TaskPool
from ranks.workloads.chess_value.tasks.worker import Interrupted


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
        """The score of one position, for the side to move. Where the game has ended it is a loss or a draw."""
        if stopping():
            raise Interrupted
        board = Board(format_fen(self._boards_N13[task]))
        if not board.legal_moves():
            return -MATE_CP if board.in_check else 0
        self._player.new_game(0)
        return label_cp(self._player.choose(board, Limits()), self._player)

    def close(self) -> None:
        self._player.close()
