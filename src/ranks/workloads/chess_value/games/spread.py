"""Spreads independent tasks, such as games, over the ranks of a run and the threads of each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import cycle, islice
from typing import Generic, Protocol, TypeVar

from ranks.engine.distributed.agree import on_every_rank
from ranks.engine.distributed.world import World

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
WAIT_S = 0.1
"""Between two looks at whether all ranks are done and whether a stop was requested."""


class Interrupted(Exception):
    """Raised inside a task when the run stops."""


class TaskWorker(Protocol[T_co]):
    """Does tasks one after the other, in one thread."""

    def run(self, task: int, stopping: Callable[[], bool]) -> T_co:
        """The result of a task, a function of its number alone. Raises Interrupted soon after `stopping()`."""
        ...

    def close(self) -> None:
        """Release memory and processes."""
        ...


def spread(what: str, count: int, make_worker: Callable[[], TaskWorker[T]], world: World, threads: int) -> list[T]:
    """The results of tasks 0 to count - 1, in this order, on every rank.

    `what`: a word for the tasks, for those who watch. Each rank does those that it carries, in `threads` threads with a
    worker each. So results must not depend on the worker. Every rank calls it. Raises Stopped inside a long iteration
    if a stop was requested; a UserError of any rank on all ranks."""
    rank = _RankTasks(list(world.items(count)), make_worker)
    try:
        rank.start(min(threads, len(rank.tasks)))
        while world.any(rank.is_busy()):
            rank.wait(WAIT_S)
            world.check_stop()
            world.session.progress(what, len(rank.results), len(rank.tasks))
    finally:
        rank.stop()
    on_every_rank(world, rank.raise_problem)
    mine = [result for _, result in sorted(rank.results.items())]
    shares = [len(world.assignment.items_of(each, count)) for each in range(world.size)]
    # Every rank has results for its share, except those of a forecast, which give what the only one gives.
    parts = zip(shares, world.comm.gather_objects(mine), strict=True)
    return [result for share, part in parts for result in islice(cycle(part), share)]


class _RankTasks(Generic[T]):
    """The tasks of one rank and its threads."""

    def __init__(self, tasks: list[int], make_worker: Callable[[], TaskWorker[T]]) -> None:
        self.tasks, self._make_worker = tasks, make_worker
        self.results: dict[int, T] = {}
        self._left = iter(tasks)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._problem: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def start(self, threads: int) -> None:
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def is_busy(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def wait(self, wait_s: float) -> None:
        """Wait for the end of a thread that is still alive, but not longer."""
        alive = [thread for thread in self._threads if thread.is_alive()]
        if alive:
            alive[0].join(wait_s)

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def raise_problem(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _work(self) -> None:
        try:
            worker = self._make_worker()
            try:
                while (task := self._take()) is not None:
                    self.results[task] = worker.run(task, self._stopping.is_set)
            finally:
                worker.close()
        except Interrupted:
            pass
        except BaseException as problem:
            self._problem = problem
            self._stopping.set()

    def _take(self) -> int | None:
        with self._lock:
            return None if self._stopping.is_set() else next(self._left, None)
