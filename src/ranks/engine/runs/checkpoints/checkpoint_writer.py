"""Writes the checkpoints of an open run, on the first rank."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ranks.engine.distributed.world import World
from ranks.engine.files.disk import writing
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.phases import Phase
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.checkpoint import HostState
from ranks.engine.runs.checkpoints.history import record
from ranks.engine.runs.checkpoints.manifest import Manifest
from ranks.engine.runs.folder import RunFolder, name_of
from ranks.engine.runs.run_log import RunLog
from ranks.engine.state import Stateful
from ranks.engine.update.learner import Learner


class CheckpointWriter:
    """`manifest`: of the newest checkpoint, known to the first rank."""

    def __init__(
        self, folder: RunFolder, world: World, keep: Mapping[str, Stateful], log: RunLog, manifest: Manifest
    ) -> None:
        self.folder, self.world, self.keep, self.log, self.manifest = folder, world, keep, log, manifest

    def host_state(self) -> HostState:
        """A copy of the state of everything that the run keeps. Every rank calls it."""
        return HostState.of({name: kept.state_dict() for name, kept in self.keep.items()})

    def write(self, state: HostState, iteration: int, time_s: float, score: float | None) -> dict[str, Any] | None:
        """Write a checkpoint and delete old ones. The `saved` event on the first rank, None on
        others. Raises UserError where the disk is full, read-only or damaged."""
        if self.world.rank != 0:
            return None
        with heartbeat.during(Phase.SAVE):
            return self._write(state, iteration, time_s, score)

    def _write(self, state: HostState, iteration: int, time_s: float, score: float | None) -> dict[str, Any]:
        start = time.perf_counter()
        measured = {name: kept.measured for name, kept in self.keep.items() if isinstance(kept, Learner)}
        about = {
            "time_s": time_s,
            "score": score,
            "ranks": self.world.size,
            "measured": {"assignment": list(self.world.assignment.bounds), **measured},
            **self.log.lengths(),
        }
        folder = self.folder.checkpoints
        with writing(f"to save a checkpoint in {folder}", folder):
            self.manifest = checkpoint.write(folder, iteration, state, about)
        with writing(f"to delete old checkpoints in {folder}", folder):
            checkpoint.rotate(folder)
            checkpoint.delete_unnamed_files(folder, before=iteration)
        seconds = time.perf_counter() - start
        path = str(folder / name_of(iteration))
        return {"event": "saved", "checkpoint": path, "seconds": seconds, **record(self.manifest)}
