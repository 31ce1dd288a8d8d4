"""Threads of the rank as workers: for a `gather` that waits or computes without holding Python's lock."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from ranks.data.dataset import Dataset
from ranks.data.loading.place import ROW, RowField, enter_worker
from ranks.data.loading.tasks import Activity, Failed, Problem, Task, gather_task, next_worker, where

Tasks = SimpleQueue[Task | None]


@dataclass(frozen=True)
class _Finished:
    """What a thread has done. `outcome`: a batch or a Problem."""

    worker: int
    number: int
    outcome: Any


class ThreadWorkers:
    """Threads that read one data set. They end with the process, also in the middle of an item."""

    starting = False

    def __init__(self, dataset: Dataset[Any], num_workers: int, *, purpose: str) -> None:
        """Start them. `purpose`: of the stream, for errors."""
        self.dataset, self.purpose = dataset, purpose
        self._queues: list[Tasks] = [SimpleQueue() for _ in range(num_workers)]
        self._finished: SimpleQueue[_Finished] = SimpleQueue()
        self._tasks: list[dict[int, Task]] = [{} for _ in self._queues]
        self._rows = [memoryview(bytearray(8 * ROW)).cast("q") for _ in self._queues]
        for number, (queue, row) in enumerate(zip(self._queues, self._rows, strict=True)):
            arguments = (dataset, row, queue, self._finished, number)
            threading.Thread(target=_work, args=arguments, name=f"data worker {number}", daemon=True).start()
        self.close = weakref.finalize(self, _close, self._queues)

    def submit(self, task: Task) -> None:
        worker = next_worker(task.number, {w: len(tasks) for w, tasks in enumerate(self._tasks)})
        self._tasks[worker][task.number] = task
        self._queues[worker].put(task)

    def activity(self, number: int) -> Activity:
        worker = next(w for w, tasks in enumerate(self._tasks) if number in tasks)
        row = self._rows[worker]
        return Activity(thread_name(worker), 0, row[RowField.ITEMS], row[RowField.ITEM])

    def receive(self, wait_s: float) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for turn in itertools.count():
            try:
                done = self._finished.get(timeout=wait_s) if turn == 0 and wait_s > 0 else self._finished.get_nowait()
            except Empty:
                return found
            del self._tasks[done.worker][done.number]
            found[done.number] = self._failed(done) if isinstance(done.outcome, Problem) else done.outcome
        return found

    def _failed(self, done: _Finished) -> Failed:
        name = thread_name(done.worker)
        return Failed(done.outcome.as_error(where(name, self.dataset, done.outcome.item, self.purpose)))


def thread_name(worker: int) -> str:
    """How errors call a worker."""
    return f"data worker {worker} (a thread)"


def _work(dataset: Dataset[Any], row: memoryview, queue: Tasks, finished: SimpleQueue[_Finished], worker: int) -> None:
    """Do tasks until None comes."""
    enter_worker(row)
    while (task := queue.get()) is not None:
        try:
            outcome = gather_task(dataset, task)
        except BaseException as error:  # such as SystemExit, which would end the thread without a word
            outcome = Problem.of(error, int(task.ids[0]))
        finished.put(_Finished(worker, task.number, outcome))


def _close(queues: Sequence[Tasks]) -> None:
    for queue in queues:
        queue.put(None)
