"""A pool of single-thread engines on this machine, driven by one loop.

    positions ──► ready tasks ──► engine 1 ┐
                                  engine 2 ├──► (index, score) in the order in which they are known
                                  engine 3 ┘

An engine that dies or hangs is replaced, and its position is tried once more. A position on which two engines fail is
set aside. An engine has several positions at a time, so that it need not wait for the next; it fails on the first of
them.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Generator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ranks.chess.players.player import Forfeit, Limits
from ranks.chess.uci.timeouts import DEFAULT_TIMEOUTS, Timeouts
from ranks.data.prepared.say import say
from ranks.errors import UserError
from ranks.workloads.chess_value.labels.label import NO_SCORE
from ranks.workloads.chess_value.labels.position_keys import fresh_fens
from ranks.workloads.chess_value.labels.teacher_engine import PositionScore, PositionTask, TeacherEngine, start_teacher

TICK_S = 0.25
"""Between two looks at all engines, whether they write or not."""
FORMATTED = 64
"""Positions that are written as text together."""
MOST_SET_ASIDE = 10
"""Positions in a row without a score; then the engine is at fault and not the positions."""


class EnginePool:
    """Engines that score positions. The thread that makes it uses it, and outlives it."""

    def __init__(
        self,
        command: list[str],
        limits: Limits | None,
        engines: int,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        report: Callable[[str], None] = say,
    ) -> None:
        """Start one engine; the others start when there is work for them. Raises UserError.

        limits: of a search; None for static evaluations.
        report: gets one line for each engine that is replaced and each position that is set aside."""
        self._command, self._limits, self._timeouts, self._report = command, limits, timeouts, report
        self._most = engines
        self._poll = select.poll()
        self._engines: list[TeacherEngine] = []
        self._by_output: dict[int, TeacherEngine] = {}
        self._set_aside_in_a_row = 0
        self.identity = self._start().identity
        """The engine's name and version: what labels are cached by."""

    def scores(self, boards_N13: NDArray[np.uint64]) -> Generator[PositionScore]:
        """Score positions, in the order in which scores are known. Raises UserError where engines fail all the time.

        A caller that stops early closes the generator; engines that still search are then ended."""
        tasks, looked_s = _Tasks(boards_N13), time.monotonic()
        try:
            while True:
                yield from self._feed(tasks)
                if not any(engine.tasks for engine in self._engines):
                    return
                ready = [self._by_output[output] for output, _ in self._poll.poll(1000 * TICK_S)]
                found = [score for engine in ready for score in self._receive(engine, tasks, ready=True)]
                if time.monotonic() - looked_s > TICK_S:  # at engines that are silent, or write errors only
                    searching = [engine for engine in self._engines if engine.tasks]
                    found += [score for engine in searching for score in self._receive(engine, tasks, ready=False)]
                    looked_s = time.monotonic()
                tasks.prepare(2 * sum(engine.most_tasks for engine in self._engines))
                yield from found
        finally:
            for engine in [engine for engine in self._engines if engine.tasks]:
                self._remove(engine)

    def close(self) -> None:
        """End all engines."""
        for engine in [*self._engines]:
            self._remove(engine)

    def _feed(self, tasks: _Tasks) -> list[PositionScore]:
        """Give each idle engine positions. Returns positions on which two engines failed."""
        failed: list[PositionScore] = []
        while any(not engine.tasks for engine in self._engines) or len(self._engines) < self._most:
            if not tasks:
                break
            idle = next((engine for engine in self._engines if not engine.tasks), None)
            failed += self._give(idle or self._start(), tasks)
        return failed

    def _give(self, engine: TeacherEngine, tasks: _Tasks) -> list[PositionScore]:
        """Fill up an engine's positions. Returns those on which two engines failed."""
        spare = 0 if engine.tasks else self._most - 1  # an engine that works leaves the last ones to idle engines
        fair = (len(tasks) + spare) // self._most  # few positions are spread over all
        given = tasks.next(min(engine.most_tasks - len(engine.tasks), fair))
        try:
            if given:
                engine.give(given)
        except Forfeit as fault:
            return self._failed(engine, fault, tasks)
        return []

    def _receive(self, engine: TeacherEngine, tasks: _Tasks, *, ready: bool) -> list[PositionScore]:
        """Scores of an engine's positions that are known or never will be. The engine gets its next positions."""
        if not engine.tasks:  # it writes although it is idle, or it has ended
            engine.client.process.read_output()
            if engine.client.process.ended:
                self._remove(engine)
            return []
        try:
            scores = engine.receive(ready=ready)
        except Forfeit as fault:
            return self._failed(engine, fault, tasks)
        if not scores:
            return []
        self._set_aside_in_a_row = 0
        return [*scores, *self._give(engine, tasks)]

    def _failed(self, engine: TeacherEngine, fault: Forfeit, tasks: _Tasks) -> list[PositionScore]:
        """End an engine; `_feed` starts another. Its position is tried again, or set aside. Those after it wait."""
        task = engine.tasks[0]
        tasks.put_back(list(islice(engine.tasks, 1, None)))
        self._remove(engine)
        if not task.fault:
            self._report(f"the engine {fault}: it is replaced, and the position is tried again: {task.fen}")
            tasks.put_back([task._replace(fault=str(fault))])
            return []
        self._report(f"no label, two engines failed on the position {task.fen}: {task.fault}; then it {fault}")
        self._set_aside_in_a_row += 1
        if self._set_aside_in_a_row >= MOST_SET_ASIDE:
            found = f"{MOST_SET_ASIDE} positions in a row ended two engines each; the last engine {fault}"
            raise UserError(f"labels of the engine '{self._command[0]}'", found, "try another engine or version")
        return [PositionScore(task.number, NO_SCORE)]

    def _start(self) -> TeacherEngine:
        engine = start_teacher(self._command, self._limits, self._timeouts)
        self._engines.append(engine)
        self._poll.register(engine.client.process.output, select.POLLIN)
        self._by_output[engine.client.process.output] = engine
        return engine

    def _remove(self, engine: TeacherEngine) -> None:
        self._engines.remove(engine)
        self._poll.unregister(engine.client.process.output)
        del self._by_output[engine.client.process.output]
        if engine.tasks:
            engine.client.kill()
        else:
            engine.client.close()


class _Tasks:
    """Positions as text, some of them ahead of the engines, and those that are tried again."""

    def __init__(self, boards_N13: NDArray[np.uint64]) -> None:
        self._boards_N13 = boards_N13
        self._formatted = 0
        self._ready: deque[PositionTask] = deque()

    def __len__(self) -> int:
        """Positions that no engine has."""
        return len(self._ready) + len(self._boards_N13) - self._formatted

    def next(self, most: int) -> list[PositionTask]:
        """The next positions, at most so many."""
        self.prepare(most)
        return [self._ready.popleft() for _ in range(min(most, len(self._ready)))]

    def prepare(self, count: int) -> None:
        """Have so many positions ready."""
        while len(self._ready) < count and self._formatted < len(self._boards_N13):
            block_N13 = self._boards_N13[self._formatted : self._formatted + FORMATTED]
            self._ready.extend(PositionTask(self._formatted + at, fen) for at, fen in enumerate(fresh_fens(block_N13)))
            self._formatted += len(block_N13)

    def put_back(self, tasks: list[PositionTask]) -> None:
        """Positions that an engine had and did not score."""
        self._ready.extend(tasks)
