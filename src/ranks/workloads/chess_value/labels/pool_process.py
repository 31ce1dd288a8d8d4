"""The process that drives the engines.

    rank ── boards ──► this process ── UCI ──► engines
         ◄── scores, a batch every half second, and lines for the user

It is a process of its own because a rank that trains holds Python's lock for milliseconds, and an engine at 1,000 nodes
needs a new position each millisecond. It imports no torch. The kernel kills the engines when it dies.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ranks.chess.uci.timeouts import DEFAULT_TIMEOUTS, Timeouts
from ranks.errors import UserError
from ranks.workloads.chess_value.helper_process import HelperProcess
from ranks.workloads.chess_value.labels.engine_pool import EnginePool
from ranks.workloads.chess_value.labels.teacher_engine import label_limits
from ranks.workloads.chess_value.rank_connection import RankConnection

BATCH_S = 0.5
CLOSE_S = 10.0
Answer = tuple[Literal["identity", "scores", "line", "error"], Any]
"""What the process sends: its engine, scores (None after the last), a line for the user, or a UserError."""
OnScores = Callable[[NDArray[np.int64], NDArray[np.int16]], None]


@dataclass(frozen=True)
class PoolSettings:
    """What the engines are and what they search."""

    command: list[str]
    limit: str
    engines: int
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    silence_s: float = math.inf
    """The process hangs where it shows no sign of life for longer."""


class PoolProcess(HelperProcess):
    """The rank's side."""

    def __init__(self, settings: PoolSettings, report: Callable[[str], None]) -> None:
        """Start the process and its first engine. Raises UserError where the program is no engine."""
        super().__init__(__name__, f"drives the engines '{settings.command[0]}'", settings.silence_s)
        self._report = report
        try:
            self.send(settings)
            self.identity: str = self._answer()[1]
        except BaseException:
            self.close(CLOSE_S)
            raise

    def score(self, boards_N13: NDArray[np.uint64], on_scores: OnScores) -> None:
        """Score positions; `on_scores` gets indices and scores as they come, NO_SCORE where two engines failed.
        Raises UserError, and as `send`. After an error of `on_scores` the process is abandoned: the scores that it has
        sent must not become those of the next positions."""
        self.send(np.ascontiguousarray(boards_N13))
        try:
            while (batch := self._answer()[1]) is not None:
                on_scores(*batch)
        except BaseException:
            self.abandon()
            raise

    def _answer(self) -> Answer:
        """The next answer that is no line for the user. Raises UserError."""
        while True:
            kind, value = answer = self.receive()
            if kind == "error":
                raise value
            if kind != "line":
                return answer
            self._report(value)


def main(argv: Sequence[str]) -> None:
    """Serve the rank until it closes the socket."""
    connection = RankConnection(int(argv[0]))
    try:
        settings: PoolSettings = connection.recv()
        serve(connection, settings)
    except UserError as error:
        connection.send(("error", error))
    except (EOFError, OSError):  # the rank has ended, or closed the pool
        pass


def serve(connection: RankConnection, settings: PoolSettings) -> None:
    """Score what the rank sends. Raises UserError, and EOFError at the end."""
    limits = label_limits(settings.limit)
    pool = EnginePool(
        settings.command, limits, settings.engines, settings.timeouts, lambda text: connection.send(("line", text))
    )
    try:
        connection.send(("identity", pool.identity))
        while True:
            boards_N13: NDArray[np.uint64] = connection.recv()
            batch: list[tuple[int, int]] = []
            sent_s = time.monotonic()
            for score in pool.scores(boards_N13):
                batch.append(score)
                if time.monotonic() - sent_s > BATCH_S:
                    connection.send(("scores", _arrays(batch)))
                    batch, sent_s = [], time.monotonic()
            connection.send(("scores", _arrays(batch)))
            connection.send(("scores", None))
    finally:
        pool.close()


def _arrays(batch: list[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    index_N, cp_N = np.array(batch, np.int64).reshape(-1, 2).T
    return index_N, cp_N.astype(np.int16)


if __name__ == "__main__":
    main(sys.argv[1:])
