"""Labels of an engine: from the cache where they are known, else computed, and cached.

    teacher = Teacher(TeacherSettings("stockfish", "nodes:1000", engines=2))
    labels = teacher.submit(boards_N13)            # returns at once; the engines work while the caller trains
    labels.result().cp_N                           # int16[N]

Legend: N positions, U positions whose label is unknown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ranks.chess.core.words import KEY_WORD
from ranks.chess.uci.timeouts import DEFAULT_TIMEOUTS, Timeouts
from ranks.data.prepared.say import say
from ranks.engine.config import HANG_TIMEOUT, hang_timeout_s
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.workloads.chess_value.labels.cache_file import CacheAbout
from ranks.workloads.chess_value.labels.label import NO_SCORE
from ranks.workloads.chess_value.labels.label_cache import LabelCache, default_root
from ranks.workloads.chess_value.labels.pool_process import CLOSE_S, PoolProcess, PoolSettings
from ranks.workloads.chess_value.labels.teacher_engine import find_teacher

FLUSH_S = 30.0
"""Labels are written to the cache at least this often: a run that is killed loses no more."""


@dataclass(frozen=True)
class TeacherSettings:
    """An engine, what it searches, and where its labels are kept."""

    command: str = "stockfish"
    limit: str = "nodes:1000"
    """nodes:N, depth:D or static."""
    engines: int = 1
    cache: Path | None = None
    """By default in the user's cache folder."""
    cache_bytes: int | None = None
    """The most that the labels may take, see `LabelCache`."""
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    silence_s: float = hang_timeout_s(HANG_TIMEOUT)
    """The process of the engines hangs where it shows no sign of life for longer."""


class TaughtLabels(NamedTuple):
    """The labels of positions."""

    cp_N: NDArray[np.int16]
    """Scores, see `units`; NO_SCORE where two engines failed."""
    cached: int
    """Positions whose label was in the cache."""
    computed: int
    """Positions that an engine searched."""
    seconds: float
    """How long the engines took."""


class Teacher:
    """Engines of this machine with their cache. The thread that makes it outlives it."""

    def __init__(self, settings: TeacherSettings, report: Callable[[str], None] = say) -> None:
        """Start the first engine and open the cache. Raises UserError where there is no engine, with the install
        line."""
        command = find_teacher(settings.command)
        pool = PoolSettings(command, settings.limit, settings.engines, settings.timeouts, settings.silence_s)
        self._pool = PoolProcess(pool, report)
        self.about = CacheAbout(self._pool.identity, settings.limit)
        try:
            root = settings.cache if settings.cache is not None else default_root()
            self._cache = LabelCache(root, self.about, settings.cache_bytes, report)
        except BaseException:
            self._pool.close(CLOSE_S)
            raise
        self._thread = ThreadPoolExecutor(1, "labels")
        self.share_done = 0.0
        """Of the positions that are being labelled now."""

    def submit(self, boards_N13: NDArray[np.uint64]) -> Future[TaughtLabels]:
        """Label positions in the background, after those that were submitted before. The result raises UserError."""
        return self._thread.submit(self.label, boards_N13)

    def label(self, boards_N13: NDArray[np.uint64]) -> TaughtLabels:
        """Label positions. No other labelling may be in progress."""
        self.share_done = 0.0
        self._cache.refresh()
        cp_N = self._cache.look_up(boards_N13)
        unknown = np.flatnonzero(cp_N == NO_SCORE)
        cached = len(cp_N) - len(unknown)
        if not len(unknown):
            return TaughtLabels(cp_N, cached, 0, 0.0)
        _, first, again = np.unique(boards_N13[unknown, KEY_WORD], return_index=True, return_inverse=True)
        started_s = time.perf_counter()
        computed_U = self._compute(boards_N13[unknown[first]])
        cp_N[unknown] = computed_U[again]
        return TaughtLabels(cp_N, cached, len(first), time.perf_counter() - started_s)

    def close(self) -> None:
        """End the engines. What was computed is in the cache."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._pool.close(CLOSE_S)
        self._thread.shutdown()

    def _compute(self, boards_U13: NDArray[np.uint64]) -> NDArray[np.int16]:
        cp_U = np.full(len(boards_U13), NO_SCORE, np.int16)
        unsaved: list[NDArray[np.int64]] = []
        saved_s, scored = time.monotonic(), 0

        def save() -> None:
            if unsaved:
                index = np.concatenate(unsaved)
                unsaved.clear()
                self._cache.add(boards_U13[index], cp_U[index])

        def take(index: NDArray[np.int64], cp: NDArray[np.int16]) -> None:
            nonlocal saved_s, scored
            cp_U[index] = cp
            scored += len(index)
            self.share_done = scored / len(cp_U)
            unsaved.append(index)
            if time.monotonic() - saved_s > FLUSH_S:
                save()
                saved_s = time.monotonic()

        try:
            self._pool.score(boards_U13, take)
        finally:
            save()
        return cp_U


def engines_here(asked: int | None, busy: int, report: Callable[[str], None] = say) -> int:
    """Engines on this machine: as many as are asked for, at most one for each core besides `busy` ones, at least one.
    `report`: gets a line where more are asked for."""
    most = max(1, available_cores() - busy)
    if asked is not None and asked > most:
        report(f"{asked} engines asked for, {most} started: one for each free core of this machine")
    return min(asked or most, most)
