"""Does independent tasks, such as games, on the ranks of a run and the cores of each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from typing import Generic, TypeVar

import torch

from ranks.engine.distributed.agree import on_every_rank
from ranks.engine.distributed.world import World
from ranks.errors import ProcessLost
from ranks.workloads.chess_value.tasks.process import TaskProcess
from ranks.workloads.chess_value.tasks.worker import Interrupted, TaskWorker

T = TypeVar("T")
WAIT_S = 0.1
"""Between two looks at whether all ranks are done and whether a stop was requested."""


class TaskPool:
    """The workers of a rank, one for each of its threads.

        with closing(TaskPool(world)) as pool:
            results = pool.map("games", count, make_worker, in_processes=True)

    A small search of the engine is a third Python, whose lock one thread holds at a time. So several workers are
    processes, where `make_worker` can be pickled."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._workers = torch.get_num_threads()
        self._processes: list[TaskProcess] = []

    def map(self, what: str, count: int, make_worker: Callable[[], TaskWorker[T]], *, in_processes: bool) -> list[T]:
        """The results of tasks 0 to count - 1, in this order, on every rank.

        `what`: a word for the tasks, for those who watch. `in_processes`: `make_worker` and results can be pickled.
        Each rank does those tasks that it carries. Results must not depend on the worker. Every rank calls it. Raises
        Stopped inside a long iteration if a stop was requested; a UserError of any rank on all ranks; HelperLost where
        a process was killed."""
        world = self.world
        rank = _RankTasks[T](list(world.items(count)))
        try:
            workers = min(self._workers, len(rank.tasks))
            rank.start(self._makers(make_worker, workers) if in_processes else [make_worker] * workers)
            while world.any(rank.is_busy()):
                rank.wait(WAIT_S)
                rank.raise_loss()
                world.check_stop()
                world.session.progress(what, len(rank.results), len(rank.tasks))
        except BaseException:
            for process in self._processes:
                process.kill()  # threads that wait for it go on
            rank.stop()
            self.close()
            raise
        rank.stop()
        on_every_rank(world, rank.raise_problem)
        mine = [result for _, result in sorted(rank.results.items())]
        shares = [len(world.assignment.items_of(each, count)) for each in range(world.size)]
        # Every rank has results for its share, except those of a forecast, which give what the only one gives.
        parts = zip(shares, world.comm.gather_objects(mine), strict=True)
        return [result for share, part in parts for result in islice(cycle(part), share)]

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
            process.close()
        self._processes = []

    def _makers(self, make_worker: Callable[[], TaskWorker[T]], workers: int) -> Sequence[Callable[[], TaskWorker[T]]]:
        """How each thread makes its worker. Processes start here, since they die with the thread that starts them."""
        if self._workers == 1:
            return [make_worker] * workers
        self._processes = [process for process in self._processes if process.is_alive]
        while len(self._processes) < workers:
            self._processes.append(TaskProcess(self.world.config.hang_timeout_s))
        return [partial(process.worker, make_worker) for process in self._processes[:workers]]


class _RankTasks(Generic[T]):
    """The tasks of one rank and its threads."""

    def __init__(self, tasks: list[int]) -> None:
        self.tasks = tasks
        self.results: dict[int, T] = {}
        self._left = iter(tasks)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._problem: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def start(self, makers: Sequence[Callable[[], TaskWorker[T]]]) -> None:
        self._threads = [threading.Thread(target=self._work, args=(make,), daemon=True) for make in makers]
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

    def raise_loss(self) -> None:
        """At once, as the launcher ends all ranks then."""
        if isinstance(self._problem, ProcessLost):
            raise self._problem

    def _work(self, make_worker: Callable[[], TaskWorker[T]]) -> None:
        try:
            worker = make_worker()
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
