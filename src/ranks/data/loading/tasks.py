"""What the prefetcher and its workers say to each other."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from ranks.data.dataset import Dataset, described
from ranks.data.loading import place
from ranks.errors import ProcessLost, UserError

NOT_THE_USERS = (str(Path(__file__).parents[2]), str(Path(torch.__file__).parents[1]), str(Path(os.__file__).parent))
"""Folders of this package, of installed packages and of Python."""


@dataclass(frozen=True)
class Task:
    """Items to gather together. `key`: see `place.current_key`."""

    number: int
    ids: Tensor
    key: int


@dataclass(frozen=True)
class Activity:
    """What a worker does. `items`: how many it has begun; `item`: the last one; `pid`: 0 for a thread."""

    name: str
    pid: int
    items: int
    item: int


class DataWorkerError(Exception):
    """A worker of background loading died, hung or raised: worker, item, and what happened."""


class DataWorkerLost(DataWorkerError, ProcessLost):
    """A worker was killed by a signal."""


class DataWorkerHangs(DataWorkerError, ProcessLost):
    """A worker process shows no progress."""

    hangs = True


@dataclass(frozen=True)
class Problem:
    """An exception in a worker. `where`: file:line of the user's code; `error`: a UserError, shown as it is."""

    item: int
    summary: str
    where: str
    traceback: str
    error: UserError | None

    @classmethod
    def of(cls, error: BaseException, item: int) -> Problem:
        """From the exception, where it was caught. `item`: over which it was raised."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(NOT_THE_USERS)]
        at = own[-1] if own else frames[-1] if frames else None
        return cls(
            item,
            f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
            f" (at {at.filename}:{at.lineno})" if at is not None else "",
            "".join(traceback.format_exception(error)).rstrip(),
            error if isinstance(error, UserError) else None,
        )

    def as_error(self, context: str) -> Exception:
        """What the rank raises. `context`: worker and item; the worker's own traceback is a note."""
        if self.error is not None:
            return self.error
        raised = DataWorkerError(f"{context}: it raised {self.summary}{self.where}")
        raised.add_note(f"in the worker:\n{self.traceback}")
        return raised


@dataclass(frozen=True)
class Failed:
    """In place of a batch: what to raise where the batch is needed. A run may end before that."""

    error: Exception


def gather_task(dataset: Dataset[Any], task: Task) -> Any:
    """The batch of a task, or the Problem of the exception that its `gather` raised."""
    before = place.items_begun()
    try:
        place.note_item(int(task.ids[0]))
        with place.item_key(task.key), torch.no_grad():
            return dataset.gather(task.ids)
    except Exception as error:
        notes_items = place.items_begun() > before + 1
        return Problem.of(error, place.last_item() if notes_items else failing_item(dataset, task))


def failing_item(dataset: Dataset[Any], task: Task) -> int:
    """The first item of a failed task that also fails alone; the first item where none does."""
    with place.item_key(task.key), torch.no_grad():
        for ids in task.ids.split(1):
            try:
                dataset.gather(ids)
            except Exception:
                return int(ids)
    return int(task.ids[0])


def where(worker: str, dataset: Dataset[Any], item: int, purpose: str) -> str:
    """'data worker 1 (process 12) at item 17 (a.mp4) of the train data set'."""
    return f"{worker} at {described(dataset, item)} of the {purpose} data set"


def next_worker(number: int, backlogs: Mapping[int, int]) -> int:
    """The worker for a task. `backlogs`: unfinished tasks by worker.

    In turn, so that batches are finished in the order in which they are needed. A worker that is slow, by two tasks
    more than another one, is passed over.
    """
    in_turn = list(backlogs)[number % len(backlogs)]
    least = min(backlogs, key=lambda worker: backlogs[worker])
    return in_turn if backlogs[in_turn] < backlogs[least] + 2 else least


class Workers(Protocol):
    """Worker processes, or threads."""

    def submit(self, task: Task) -> None:
        """Give the task to a worker (`next_worker`). Does not wait for it."""
        ...

    def receive(self, wait_s: float) -> dict[int, Any]:
        """Finished batches by the number of their task, or `Failed`; waits `wait_s` for the first. The error is a
        DataWorkerError, or a UserError of the data set as it is."""
        ...

    def activity(self, number: int) -> Activity:
        """Of the worker that has this task."""
        ...

    @property
    def starting(self) -> bool:
        """Whether a worker may still import torch and load the data set."""
        ...

    def close(self) -> None:
        """End all workers, also those in the middle of an item."""
        ...
