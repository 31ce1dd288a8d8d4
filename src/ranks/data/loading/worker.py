"""What runs in a worker process: gather a task's items, put them in shared memory, tell the rank."""

from __future__ import annotations

import contextlib
import pickle
import socket
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from ranks.data.dataset import Dataset
from ranks.data.loading.blocks import Stored, WorkerBlocks
from ranks.data.loading.place import enter_worker
from ranks.data.loading.tasks import Problem, Task, gather_task
from ranks.errors import of_system_limit


@dataclass(frozen=True)
class Order:
    """From the rank: a task, and the worker's blocks that are free again. `ids`: int64[N] (a pickled tensor would
    carry all that it is a part of)."""

    number: int
    ids: np.ndarray[Any, Any]
    key: int
    released: list[int]


@dataclass(frozen=True)
class Gathered:
    """To the rank."""

    number: int
    outcome: Stored | Problem


def work(dataset: Dataset[Any], row: memoryview, descriptor: int) -> None:
    """Do tasks until the rank closes its end of the socket `descriptor`. Raises nothing."""
    blocks, pipe = WorkerBlocks(), Connection(descriptor)
    enter_worker(row, blocks.empty)
    with contextlib.suppress(EOFError, OSError):
        while True:
            order: Order = pickle.loads(pipe.recv_bytes())
            blocks.release(order.released)
            outcome = gather_into(blocks, dataset, Task(order.number, torch.from_numpy(order.ids), order.key))
            pipe.send_bytes(pickle.dumps(Gathered(order.number, outcome)))
            if isinstance(outcome, Stored) and outcome.is_new:
                with blocks.sent(outcome.block) as descriptor, socket.socket(fileno=pipe.fileno()) as raw:
                    socket.send_fds(raw, [b"b"], [descriptor])
                    raw.detach()


def gather_into(blocks: WorkerBlocks, dataset: Dataset[Any], task: Task) -> Stored | Problem:
    """Gather the items of a task into a block."""
    blocks.begin()
    found = gather_task(dataset, task)
    try:
        if not isinstance(found, Problem):
            return blocks.store(found)
    except Exception as error:  # it cannot be pickled, or the system gives no more memory or files
        limit = of_system_limit(error, "shared memory for a batch") if isinstance(error, OSError) else None
        found = Problem.of(limit or error, int(task.ids[0]))
    blocks.give_back()
    return found
