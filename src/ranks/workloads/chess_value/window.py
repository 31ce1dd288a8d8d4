"""The labelled positions of a run, from which updates draw their batches.

Each part is a kept file of the run, written once and memory-mapped, see docs/kept-files.md. Every rank holds the same
positions. A thread reads the next batches while the rank trains.

Legend: B positions of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ranks.data.loading.prefetcher import Prefetcher, Source
from ranks.data.loading.thread_workers import ThreadWorkers
from ranks.engine.distributed.poll_interval import PollInterval
from ranks.engine.distributed.world import World
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.runs.kept.kept_file import KeptFile
from ranks.engine.runs.kept.kept_files import KeptFiles
from ranks.engine.sharding import rng
from ranks.engine.sharding.batch import Shards, StepBatch
from ranks.workloads.chess_value.labels.label import Labelled
from ranks.workloads.chess_value.net.losses import ValueBatch
from ranks.workloads.chess_value.parts import LabelledParts

AHEAD = 2
"""Micro-batches that the thread reads ahead, whole updates at least."""
ToBatch = Callable[[Labelled], ValueBatch]
"""Labelled positions -> a batch on the CPU."""


@dataclass(frozen=True)
class WindowPositions:
    """The positions of some parts, as a data set for the thread that reads ahead."""

    parts: LabelledParts
    to_batch: ToBatch
    cost = None
    sha256 = ""
    """The run's manifest names the parts."""

    def __len__(self) -> int:
        return len(self.parts)

    def gather(self, ids: Tensor) -> ValueBatch:
        """The positions with these indices, on the CPU."""
        return self.to_batch(self.parts.read(ids.numpy()))


class PositionWindow:
    """Parts of labelled positions; the oldest are dropped.

    window.add(cycle, labelled)
    for batch in window.batches(global_batch, reuse):
        stats = learner.step(loss, batch)
    """

    def __init__(self, name: str, most: int, to_batch: ToBatch, world: World) -> None:
        """`name`: of the folder of its files. `most`: a part is dropped when the others hold so many positions."""
        self.most, self.world = most, world
        self.added = 0
        """Positions of all parts so far, those that were dropped included."""
        self.updates = 0
        """Batches that were drawn so far."""
        self.final = 0
        """Of these, the ones of `final_batches`."""
        self._to_batch = to_batch
        self._kept = KeptFiles(world, name)
        self._parts = LabelledParts()

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, cycle: int, labelled: Labelled) -> None:
        """Add a part, and drop the oldest ones that the window does not need. Every rank calls it inside the loop of an
        open run, with the same positions. Raises UserError where the disk is full."""
        if not len(labelled.boards_N13):
            return
        file = self._kept.write(cycle, labelled._asdict())
        self._parts = LabelledParts([*self._parts.parts, self._opened(file)])
        self.added += len(labelled.boards_N13)
        while len(self) - len(self._parts.parts[0].boards_N13) >= self.most:
            self._kept.drop(self._kept.files[0])
            self._parts = LabelledParts(self._parts.parts[1:])

    def batches(self, global_batch: int, reuse: float) -> Generator[StepBatch[ValueBatch]]:
        """As many batches as are due: reuse * positions added so far / `global_batch`, less those drawn.

        Each position is drawn uniformly from the window, with replacement; the random numbers depend on the number of
        the batch and the index in it. Every rank takes all of them. Raises Stopped between two batches, if a stop was
        requested.
        """
        return self._until(self.final + int(reuse * self.added / global_batch) if len(self) else 0, global_batch)

    def final_batches(self, global_batch: int, passes: float) -> Generator[StepBatch[ValueBatch]]:
        """Batches of so many passes over the window, besides those of `batches`, and drawn in the same way."""
        due = int(passes * len(self) / global_batch)
        self.final += due
        return self._until(self.updates + due, global_batch)

    def _until(self, due: int, global_batch: int) -> Generator[StepBatch[ValueBatch]]:
        poll, first = PollInterval(self.world.comm), self.updates
        with closing(self.numbered(global_batch, first, due)) as batches:
            for batch in batches:
                self.world.session.progress("updates", self.updates - first, due - first)
                self.updates += 1
                yield batch
                if poll.due():
                    self.world.check_stop()

    def numbered(self, global_batch: int, first: int, end: int) -> Generator[StepBatch[ValueBatch]]:
        """Batches `first` to `end` of the run, without `end`: this rank's part. The window must not change before the
        last one is trained on."""
        positions = WindowPositions(self._parts, self._to_batch)
        shards, key = partial(self.shards, global_batch), partial(rng.key, self.world.seed, "value/items")
        workers = ThreadWorkers(positions, 1, purpose="window's")
        try:
            source = Source(positions, shards, key, "window's", "positions", end)
            yield from map(Prefetcher(source, workers, self.world, AHEAD).at, range(first, end))
        finally:
            workers.close()
            heartbeat.loading_queue(0, 0)

    def shards(self, global_batch: int, number: int) -> Shards:
        """This rank's shards of batch `number` of the run, from 0."""
        key = rng.key(self.world.seed, "value/batch", number)
        chosen_B = rng.integers(key, torch.arange(global_batch), 1, len(self))[:, 0]
        return Shards.assigned(chosen_B, self.world.assignment, self.world.rank)

    def read(self, ids_B: NDArray[np.int64]) -> Labelled:
        """The positions with these indices, in their order."""
        return self._parts.read(ids_B)

    def state_dict(self) -> dict[str, Any]:
        """The names of the parts and the counters."""
        return {"added": self.added, "updates": self.updates, "final": self.final, "parts": self._kept.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Open the parts that a checkpoint names."""
        self.added, self.updates, self.final = state["added"], state["updates"], state["final"]
        self._kept.load_state_dict(state["parts"])
        self._parts = LabelledParts([self._opened(file) for file in self._kept.files])

    def _opened(self, file: KeptFile) -> Labelled:
        return Labelled(**self._kept.open(file))
