"""Writes the checkpoints of an open run, on the first rank."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ranks.engine.distributed.world import World
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.phases import Phase
from ranks.engine.runs import checkpoint
from ranks.engine.runs.checkpoint import HostState
from ranks.engine.runs.folder import RunFolder
from ranks.engine.runs.run_log import RunLog
from ranks.engine.state import Stateful
from ranks.engine.update.learner import Learner


class CheckpointWriter:
    """`fingerprint`: of the newest checkpoint, known to the first rank."""

    def __init__(
        self, folder: RunFolder, world: World, keep: Mapping[str, Stateful], log: RunLog, fingerprint: str
    ) -> None:
        self.folder, self.world, self.keep, self.log, self.fingerprint = folder, world, keep, log, fingerprint

    def host_state(self) -> HostState:
        """A copy of the state of everything that the run keeps. Every rank calls it."""
        return HostState.of({name: kept.state_dict() for name, kept in self.keep.items()})

    def write(self, state: HostState, iteration: int, time_s: float, score: float | None) -> dict[str, Any] | None:
        """Write a checkpoint and delete old ones. The `saved` event on the first rank, None on
        others."""
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
        path = checkpoint.write(self.folder.checkpoints, iteration, state, about)
        checkpoint.rotate(self.folder.checkpoints)
        self.fingerprint = str(checkpoint.read_manifest(path)["fingerprint"])
        return {"event": "saved", "checkpoint": str(path), "seconds": time.perf_counter() - start}
