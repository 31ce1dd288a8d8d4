"""A run: its folder, its iterations, its checkpoints, what it logs, and how it ends."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Any

from torch import nn

from ranks.engine.config import seconds
from ranks.engine.distributed.malloc import give_back_freed_memory
from ranks.engine.distributed.session import Session
from ranks.engine.distributed.world import World
from ranks.engine.export.export import export_or_warn, warn_unless_exportable
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.runs import resume
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.checkpoints.checkpoint import HostState
from ranks.engine.runs.checkpoints.checkpoint_writer import CheckpointWriter
from ranks.engine.runs.checkpoints.history import record
from ranks.engine.runs.checkpoints.save_policy import SavePolicy
from ranks.engine.runs.folder import RunFolder
from ranks.engine.runs.metrics_rows import PeakMemory, UnwrittenRows, peak_memory_bytes
from ranks.engine.runs.plan import agree_on_iterations, plan, schedule_warning
from ranks.engine.runs.progress_file import ProgressFile
from ranks.engine.runs.resume import Opened
from ranks.engine.runs.run_log import RunLog
from ranks.engine.runs.summary import Summary, finished_event
from ranks.engine.state import Stateful
from ranks.engine.update.learner import Learner
from ranks.engine.update.step import StepStats
from ranks.errors import Stopped, UserError


class Run:
    """Made by `Run.open`. Use it as a context manager around the loop, and call `finish` after
    it."""

    def __init__(
        self, folder: RunFolder, world: World, keep: Mapping[str, Stateful], opened: Opened, closing: ExitStack
    ) -> None:
        self.folder, self.world, self.keep = folder, world, dict(keep)
        self.learners = {name: k for name, k in keep.items() if isinstance(k, Learner)}
        self.iteration = opened.manifest.iteration
        """Index of the current or next iteration, from 0; also the number of finished iterations."""
        self.total = 0
        self.session = world.session = Session(
            attached=True,
            kept=world.session.kept | {*map(id, keep.values())},
            emit=self._emit,
            clock_requests=self._clock_requests,
            finite_checkpoint=partial(checkpoint.newest_finite, folder.checkpoints),
            saved=lambda: self._saves.saved_iteration,
        )
        self._opened, self._closing = opened, closing
        if world.rank == 0:
            progress = ProgressFile(folder.path)
            closing.callback(progress.close)
            self.session.report_progress = lambda part, share: progress.write(self.iteration, part, share)
        self._log = RunLog(folder.path, opened.lengths, writes=world.rank == 0)
        closing.callback(self._log.close)
        self._checkpoints = CheckpointWriter(folder, world, self.keep, self._log, opened.manifest)
        self._began = time.perf_counter()
        self._saves = SavePolicy(world.config.save_every, self.iteration)
        self._ends_s = math.inf
        if world.config.max_time is not None:
            started_s = (world.process_env.started_ns or time.monotonic_ns()) / 1e9
            self._ends_s = started_s + seconds(world.config.max_time, "--max-time")
        self._snapshot: HostState | None = None
        self._rows = UnwrittenRows(self._log.metrics, PeakMemory(partial(peak_memory_bytes, world.device)).read)
        self._synchronised = self._ended = self._nothing_to_do = False

    @classmethod
    def open(cls, config: Any, world: World, *, keep: Mapping[str, Stateful], data: str | None = None) -> Run:
        """Begin a run, or continue it where its folder holds a checkpoint: `keep` then has that
        checkpoint's state.

        `config`: the workload's frozen dataclass; `keep`: everything whose state the run must not
        lose, by name; `data`: a hash of the training data. Raises UserError: run in use, of another
        identity, no checkpoint intact.
        """
        folder = RunFolder.of(world.config.runs_dir, world.run_name)
        world.session = Session(attached=True)  # from now on a signal waits
        with ExitStack() as closing:
            detach = closing.enter_context(ExitStack())
            detach.callback(setattr, world, "session", Session())
            lock = resume.lock(folder, world)
            if lock is not None:
                closing.callback(os.close, lock)
            opened = resume.open_folder(folder, world, config, dict(keep), data)
            run = cls(folder, world, keep, opened, closing)
            detach.pop_all()
            run._closing = closing.pop_all()
        for text in (*opened.warnings, *run._log.shortened):
            run.session.warn(text)
        for text in opened.notes:
            run.session.note(text)
        for learner in run.learners.values():
            warn_unless_exportable(learner.model, run.session.warn)
        return run

    # The loop -------------------------------------------------------------------------------------------------------

    def iterations(self, total: int, *, long: bool = False) -> Iterator[int]:
        """The iterations still to do, from 0 as in `range(total)`. Emits the plan before the first
        update.

        `long`: an iteration collects a rollout, plays games, or makes several updates, so a stop
        must not wait for its end; the state at its start is then kept in host memory and saved.
        Otherwise an iteration is one update: the first `Learner.step` of a session times it, and
        the plan says how long the run will take.

        Raises Stopped at a boundary, after a save, where a signal asked for it.
        """
        self.total, self.session.long_iterations = total, long
        if not long and not self._opened.resumed:
            self.iteration = self.world.first_iteration
        agree_on_iterations(self.world, self.iteration, total)
        self._begin_session()
        self.world.poll()
        self._boundary()
        if self.iteration < total and not self._ended:
            self._announce(long)
        first = self.iteration
        while self.iteration < total and not self._ended:
            heartbeat.iteration(self.iteration, first=self.iteration == first)
            if long:
                self._snapshot = self._checkpoints.host_state()
            row = self._rows.begin(self.iteration, self.time_s, save_s=self._saves.take_unlogged_s())
            self.session.times = row.times
            yield self.iteration
            self._rows.finish(self.time_s)
            self.iteration += 1
            if self.session.before_first_update is not None:  # the loop has not called a learner
                self.session.before_first_update = None
                self._plan(None)
            if long or self._synchronised:
                self.session.drain()
                self.world.poll()
                self._synchronised = False
            self._boundary()
        self._drain()

    def _begin_session(self) -> None:
        """Record that the run begins or continues. A run that is complete and was finished stays as
        it is."""
        complete = self._opened.resumed and self.iteration >= self.total
        self._nothing_to_do = complete and self._opened.finished
        if complete:
            self.session.note(f"complete at {self.iteration:,} of {self.total:,}, nothing to do")
        if not self._nothing_to_do:
            self._log.session(self._opened.session)
            name = "resumed" if self._opened.resumed else "opened"
            self._emit({"event": name, "checkpoint_iteration": self.iteration, **record(self._opened.manifest)})

    def _announce(self, long: bool) -> None:
        """Emit the plan now, or where one update can be timed, from the learner's first step."""
        if long or not self.learners:
            self._plan(None)
        else:
            self.session.before_first_update = self._plan

    def _plan(self, iteration_s: float | None) -> None:
        event = plan(self.world, self.keep, self.iteration, self.total, iteration_s)
        self._emit({**event, "folder": str(self.folder.path)})
        for warning in filter(None, map(schedule_warning, self.learners.values())):
            self.session.warn(warning)
        self._rows.restart(self.time_s)  # the timing of one update is no part of the first iteration

    def _boundary(self) -> None:
        """Between two iterations: write rows, save if one is due, stop if that is agreed."""
        self._rows.write_resolved()
        if self.world.size == 1 and self.world.stop.received:  # no other rank has to agree
            self.world.poll()
        decided, stop = self.world.decided, self.world.stop_signal
        if self._saves.due(self.iteration, agreed=decided.save or decided.time_up or stop != 0):
            self._save()
        if stop:
            self._stopped(stop)
            raise Stopped(stop)
        self._ended = decided.time_up

    def every(self, num_iterations: int) -> bool:
        """Whether this iteration is one of every `num_iterations`, or the last. If so, all updates
        are finished first.

        Raises UserError where `num_iterations` is less than 1.
        """
        if num_iterations < 1:
            raise UserError(
                f"something every {num_iterations} iterations", "the interval is 1 or more", "give 1 or more"
            )
        due = (self.iteration + 1) % num_iterations == 0 or self.iteration + 1 == self.total
        if due:
            self.session.drain()
            self._synchronised = True
            heartbeat.may_evaluate()
        return due

    def log(self, values: StepStats | Mapping[str, float], prefix: str = "train") -> None:
        """Add values to this iteration's row; a step's statistics are written once the device has
        computed them."""
        assert self._rows.current is not None, "log belongs inside the loop over run.iterations"
        self._rows.current.entries.append((prefix, values))

    def save(self, score: float | None = None) -> None:
        """Ask for a checkpoint at the end of this iteration. `score`: lower is better; the
        checkpoint with the best score is never deleted. A score that is not finite counts as
        none."""
        self._saves.request(score)

    # The end ----------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """A stop inside a long iteration saves the state at its start; the iteration will be
        repeated with the same random numbers. (A stop at a boundary has saved and recorded
        already.)"""
        if isinstance(error, Stopped):
            if self._rows.current is not None and self._snapshot is not None:
                if self.iteration != self._saves.saved_iteration:
                    self._write(self._snapshot)
                self._stopped(error.signum)
        elif isinstance(error, Exception) and self.world.process_env.lock_fd is None:
            with suppress(UserError):  # the disk is full: the first error says so
                self._end_session("failed")  # otherwise the launcher records it
        if error is not None:
            self._closing.close()

    def finish(self, export: nn.Module | None = None) -> Summary:
        """Save, export the weights, and sum up. Every rank calls it."""
        heartbeat.finish(self.iteration)
        self._drain()
        if self.iteration != self._saves.saved_iteration:
            self._save()
        complete = self.iteration >= self.total
        metrics: dict[str, float] = {}
        if self.world.rank == 0:
            warn, place = self.session.warn, self.folder.path / "export"
            export_folder = export_or_warn(export, place, warn) if export is not None else None
            self._end_session("finished")
            event = finished_event(
                self.folder.path,
                self.world.device,
                complete=complete,
                seconds=self.time_s,
                **record(self._checkpoints.manifest),
                export=str(export_folder) if export_folder else None,
            )
            self._emit(event)
            self._log.check_present()
            metrics = event["metrics"]
        metrics, fingerprint = self.world.comm.gather_objects((metrics, self._checkpoints.manifest.fingerprint))[0]
        self.world.session = Session()
        self._closing.close()
        return Summary(self.folder.path, self.iteration, complete, metrics, fingerprint)

    def _stopped(self, signum: int) -> None:
        self._emit({"event": "stopped", "signal": signum})
        self._end_session("stopped", signal=signum)

    def _end_session(self, event: str, **details: Any) -> None:
        if not self._nothing_to_do:
            self._log.session({"event": event, "iteration": self.iteration, **details})

    # Checkpoints, rows, events ----------------------------------------------------------------------------------------

    @property
    def has_initial_weights(self) -> bool:
        """Whether the run began with the weights of `--init-from`, in this session or an earlier one."""
        return self._opened.has_initial_weights

    @property
    def time_s(self) -> float:
        """Seconds of all sessions whose work was kept, this one included."""
        return self._opened.manifest.time_s + (0.0 if self._nothing_to_do else time.perf_counter() - self._began)

    def _clock_requests(self) -> tuple[bool, bool]:
        return self._saves.overdue(), time.monotonic() > self._ends_s

    def _drain(self) -> None:
        self.session.drain()
        self._rows.write_resolved()

    def _save(self) -> None:
        self._drain()
        if self.world.device.type == "cpu":
            give_back_freed_memory()  # a save needs several times the bytes of the weights
        self._write(self._checkpoints.host_state(), self._saves.score)
        self.world.save_done()
        self._saves.done()

    def _write(self, state: HostState, score: float | None = None) -> None:
        """`score`: of this state; one that was given inside an iteration is not that of its start."""
        start = time.perf_counter()
        event = self._checkpoints.write(state, self.iteration, self.time_s, score)
        if event is not None:
            self._emit(event)
            self._log.check_present()
        self._saves.saved_iteration = self.iteration
        self._saves.unlogged_s += time.perf_counter() - start

    def _emit(self, event: dict[str, Any]) -> None:
        self._log.event({**event, "iteration": self.iteration, "time_s": self.time_s, "time": time.time()})
