"""Decides what workers read ahead, waits for what the rank needs now, and keeps the batch exact."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from torch import Tensor

from ranks.data.dataset import Dataset
from ranks.data.loading.cuts import Cut, ReadAheadBatch
from ranks.data.loading.device_copy import DeviceCopy
from ranks.data.loading.place import item_key
from ranks.data.loading.tasks import (
    Activity,
    DataWorkerError,
    DataWorkerHangs,
    Failed,
    Task,
    Workers,
    failing_item,
    where,
)
from ranks.data.loading.tensor_tree import map_tensors
from ranks.engine.distributed.world import World
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.phases import MOST, Phase, limit_s
from ranks.engine.liveness.process_state import IS_STOPPED, is_stopped
from ranks.engine.sharding.batch import Shards

B = TypeVar("B")
POLL_S = 0.2
"""Seconds between two looks at what the workers do, while the rank waits."""


@dataclass
class Piece:
    """A micro-batch that a worker gathers. `batch`: once it has."""

    task: Task
    done: bool = False
    batch: Any = None


@dataclass
class Window(Generic[B]):
    """An iteration that is read ahead. `pieces`: by their ids, as `cut` makes them."""

    batch: ReadAheadBatch[B]
    cut: Cut | None = None
    pieces: dict[bytes, Piece] = field(default_factory=dict[bytes, Piece])


@dataclass(frozen=True)
class Source(Generic[B]):
    """What a stream reads. `shards`: this rank's part of an iteration. `key`: of the random numbers of its items.
    `item`: as metrics.jsonl counts them. `end`: this iteration and later ones are not read ahead; None: there is no
    end."""

    dataset: Dataset[B]
    shards: Callable[[int], Shards]
    key: Callable[[int], int]
    purpose: str
    item: str
    end: int | None = None


class Prefetcher(Generic[B]):
    """Gives out batches that workers have gathered. `ahead`: how many micro-batches after the present iteration the
    workers may have at a time, at least."""

    def __init__(self, source: Source[B], workers: Workers, world: World, ahead: int) -> None:
        self.source, self.workers, self.world, self.ahead = source, workers, world, ahead
        self.cut = Cut.first(world)
        self.to_device = DeviceCopy(world.device)
        self._first: int | None = None
        """The first iteration of the session. Its pieces are asked for several times, by dry runs."""
        self._next = 0
        self._windows: dict[int, Window[B]] = {}
        """By iteration."""
        self._waiting: dict[int, Piece] = {}
        """By the number of the task: what workers still have. Pieces that are no longer wanted are among them."""
        self._received = False
        """Whether a worker has finished a task."""

    def at(self, iteration: int) -> ReadAheadBatch[B]:
        """This rank's part of an iteration's batch, gathered. Waits for it.

        Raises DataWorkerError where a worker died, hangs or raised over it.
        """
        self._first = iteration if self._first is None else self._first
        self._take_in(0.0)
        self._show_queue(iteration)
        self._read_ahead(iteration)
        with self.world.session.timed("data_wait"):
            for piece in self._windows[iteration].pieces.values():
                self._wait_for(piece)
        return self._windows[iteration].batch

    def gather(self, iteration: int, ids: Tensor) -> Any:
        """The batch of these items: a worker's, or gathered here where nobody foresaw that it would be asked for."""
        window, name = self._windows.get(iteration), ids.numpy().tobytes()
        piece = window.pieces.get(name) if window is not None else None
        if piece is None or not piece.done or isinstance(piece.batch, Failed):
            return self.to_device(gather_here(self.source, iteration, ids))
        on_cpu = self.world.device.type == "cpu"
        if on_cpu and iteration == self._first:
            return map_tensors(Tensor.clone, piece.batch)  # another pass must not see what this one changes in it
        if on_cpu and window is not None:
            del window.pieces[name]
        return self.to_device(piece.batch)

    # What is read ahead -----------------------------------------------------------------------------------------------

    def _read_ahead(self, iteration: int) -> None:
        """Submit the pieces of this iteration and of the next ones. What was read for others is forgotten."""
        until, end = iteration + 1 + self.ahead, self.source.end
        numbers = range(iteration, until if end is None else max(iteration + 1, min(until, end)))
        self._windows = {number: window for number, window in self._windows.items() if number in numbers}
        self._submit(iteration)
        after = 0
        for number in numbers[1:]:
            window = self._windows.get(number)
            after += len(window.pieces if window is not None and window.cut == self.cut else self._submit(number))
            if after >= self.ahead:
                break

    def _show_queue(self, iteration: int) -> None:
        """Show the launcher how much of what was read ahead is ready. It costs some microseconds an iteration."""
        windows = [window for number, window in self._windows.items() if number >= iteration]
        done = [piece.done for window in windows for piece in window.pieces.values()]
        if done:
            heartbeat.loading_queue(sum(done), len(done))

    def _submit(self, iteration: int) -> Mapping[bytes, Piece]:
        """Give the pieces of an iteration to workers, unless they have them."""
        window = self._windows.get(iteration)
        if window is None:
            gather: Callable[[Tensor], Any] = partial(self.gather, iteration)
            shards = self.source.shards(iteration)
            window = Window(ReadAheadBatch(shards, gather, self.source.item, self._notice))
            self._windows[iteration] = window
        pieces = {ids.numpy().tobytes(): ids for ids in self.cut.pieces(window.batch)}
        window.pieces = {n: window.pieces.get(n) or self._new_piece(ids, iteration) for n, ids in pieces.items()}
        window.cut = self.cut
        return window.pieces

    def _new_piece(self, ids: Tensor, iteration: int) -> Piece:
        piece = Piece(Task(self._next, ids, self.source.key(iteration)))
        self._next += 1
        self._waiting[piece.task.number] = piece
        self.workers.submit(piece.task)
        return piece

    def _notice(self, cut: Cut) -> None:
        """The learner cuts its batches like this now."""
        self.cut = cut

    # Waiting ----------------------------------------------------------------------------------------------------------

    def _take_in(self, wait_s: float) -> bool:
        """Receive finished pieces. Whether there were any."""
        found = self.workers.receive(wait_s)
        for number, batch in found.items():
            piece = self._waiting.pop(number)
            piece.done, piece.batch, self._received = True, batch, True
        return bool(found)

    def _wait_for(self, piece: Piece) -> None:
        """Wait until a worker has gathered the piece. Its progress is the rank's; without any for longer than the phase
        allows the worker hangs."""
        self._wait_until_done(piece)
        if isinstance(piece.batch, Failed):
            raise piece.batch.error

    def _wait_until_done(self, piece: Piece) -> None:
        if piece.done or (self._take_in(0.0) and piece.done):
            return
        timeout_s = self.world.config.hang_timeout_s
        with heartbeat.during(Phase.WAITING_FOR_DATA):
            seen, since_s = -1, time.monotonic()
            while not piece.done:
                self._take_in(POLL_S)
                if piece.done:
                    break
                doing = self.workers.activity(piece.task.number)
                starting = self.workers.starting or not self._received  # they import torch, read files the first time
                if starting:
                    most_s = MOST * timeout_s
                    heartbeat.beat()
                else:
                    most_s = limit_s(Phase.WAITING_FOR_DATA, timeout_s, heartbeat.slowest_s)
                if doing.items != seen:
                    heartbeat.beat()
                    seen, since_s = doing.items, time.monotonic()
                with heartbeat.waits_for_worker(doing.pid, doing.item):
                    if time.monotonic() - since_s > most_s:
                        raise self._hangs(doing, most_s)

    def _hangs(self, doing: Activity, most_s: float) -> DataWorkerError:
        """The error for a worker that hangs. A thread ends only with its rank, so it is no lost process."""
        at = where(doing.name, self.source.dataset, doing.item, self.source.purpose)
        silence = f"no progress for {math.floor(most_s)} s in the phase {Phase.WAITING_FOR_DATA.words}"
        if doing.pid and is_stopped(doing.pid):
            return DataWorkerHangs(f"{at}: it {IS_STOPPED}, {silence}")
        do = "where an item may take so long, give a longer --hang-timeout"
        is_process = doing.pid or self.workers.starting  # a process that starts has no id yet
        kind = DataWorkerHangs if is_process else DataWorkerError
        return kind(f"{at}: it hangs, {silence}; {do}")


def gather_here(source: Source[B], iteration: int, ids: Tensor) -> B:
    """Gather in the rank, as a worker would. What `gather` raises gets a note that names the item."""
    task = Task(0, ids, source.key(iteration))
    try:
        with item_key(task.key):
            return source.dataset.gather(ids)
    except Exception as error:
        error.add_note(where("this rank", source.dataset, failing_item(source.dataset, task), source.purpose))
        raise
