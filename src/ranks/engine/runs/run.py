"""A run: its folder, its iterations, its checkpoints, what it logs, and how it ends."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from torch import nn

from ranks.engine.config import Cadence, seconds
from ranks.engine.distributed.world import World
from ranks.engine.export.export import describe, export_model
from ranks.engine.runs import checkpoint, resume
from ranks.engine.runs.checkpoint import HostState
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, SESSIONS_FILE, RunFolder
from ranks.engine.runs.jsonl import JsonlFile, read_rows
from ranks.engine.runs.metrics_rows import Row, close_row, peak_memory_bytes, time_split
from ranks.engine.runs.plan import plan
from ranks.engine.runs.sessions import goodput
from ranks.engine.runs.state import Stateful
from ranks.engine.update.learner import Learner
from ranks.engine.update.step import StepStats
from ranks.errors import Stopped, UserError

RESULT_TAGS = ("train/", "val/", "rollout/", "arena/")


@dataclass(frozen=True)
class Summary:
    """What a run came to, alike on every rank. `metrics`: the last value of each; `complete`: it did all iterations."""

    folder: Path
    iteration: int
    complete: bool
    metrics: dict[str, float]
    fingerprint: str


class Run:
    """Made by `Run.open`; use it as a context manager around the loop, and call `finish` after it."""

    def __init__(self, folder: RunFolder, world: World, keep: Mapping[str, Stateful]) -> None:
        self.folder, self.world, self.keep = folder, world, dict(keep)
        self.iteration = 0
        """The iteration that the loop does next, or is doing."""
        self.total = 0
        self._began, self._time_offset_s = time.perf_counter(), 0.0
        self._saved_iteration, self._saved_at = -1, time.perf_counter()
        self._save_wanted, self._score, self._save_s = False, None, 0.0
        self._synchronised = False
        self._fingerprint = ""
        self._snapshot: HostState | None = None
        self._ended = False
        self._row: Row | None = None
        self._rows: list[Row] = []
        self._cadence = Cadence.parse(world.config.save_every, "--save-every")
        self._ends_s = math.inf
        if world.config.max_time is not None:
            begun_s = (world.environment.begun_ns or time.monotonic_ns()) / 1e9
            self._ends_s = begun_s + seconds(world.config.max_time, "--max-time")
        self._journals: dict[str, JsonlFile] = {}
        self._lock: int | None = None

    @classmethod
    def open(cls, config: Any, world: World, *, keep: Mapping[str, Stateful], data: str | None = None) -> Run:
        """Begin a run, or continue it where its folder holds a checkpoint: `keep` then has that checkpoint's state.

        `config`: the workload's frozen dataclass; `keep`: everything whose state the run must not lose, by name;
        `data`: a hash of the training data. Raises UserError: run in use, of another identity, no checkpoint intact.
        """
        folder = RunFolder.of(world.config.runs_dir, world.config.name or Path(world.workload).stem)
        run = cls(folder, world, keep)
        world.stop.deferred = True
        run._lock = resume.lock(folder, world)
        try:
            opened = resume.open_folder(folder, world, config, run.keep, data)
        except BaseException:
            run._close()
            raise
        run.iteration = run._saved_iteration = opened.iteration
        run._time_offset_s, run._fingerprint = opened.time_s, opened.fingerprint
        if world.rank == 0:
            run._journals = {n: JsonlFile(folder.path / n) for n in (METRICS_FILE, EVENTS_FILE, SESSIONS_FILE)}
            for name, length in opened.cut.items():
                run._journals[name].cut(length)
            run._journals[SESSIONS_FILE].append(opened.session)
        world.emit = run._emit
        world.clock_requests = run._clock_requests
        for problem in opened.damaged:
            run._emit({"event": "warning", "text": f"damaged checkpoint passed over: {problem}"})
        for change in opened.changed_code:
            run._emit({"event": "warning", "text": f"{change} since this run trained last; the run continues with it"})
        for learner in (k for k in keep.values() if isinstance(k, Learner)):
            run._warn_of_export(learner.model)
        run._emit({"event": "resumed" if opened.resumed else "opened", "checkpoint_iteration": run.iteration})
        return run

    # The loop -------------------------------------------------------------------------------------------------------

    def iterations(self, total: int, *, long: bool = False) -> Iterator[int]:
        """The iterations still to do. `long`: one makes experience or several updates, so that a stop inside it must
        not wait for its end; the state at its start is then kept in host memory and saved.

        Raises Stopped at a boundary, after a save, where a signal asked for it.
        """
        self.total, self.world.interruptible = total, long
        self.world.poll()
        self._boundary()
        while self.iteration < total and not self._ended:
            if long:
                self._snapshot = HostState.of(self._state())
            self._row = Row(self.iteration, self.time_s)
            self._row.spent["save"], self._save_s = self._save_s, 0.0
            self.world.spent = self._row.spent
            yield self.iteration
            self._row.iteration_s = self.time_s - self._row.time_s
            self._rows.append(self._row)
            self._row = None
            self.iteration += 1
            if long or self._synchronised:
                self.world.drain()
                self.world.poll()
                self._synchronised = False
            self._boundary()
        self._drain()

    def _boundary(self) -> None:
        """Between two iterations: write rows, save if one is due, stop if that is agreed."""
        self._write_rows()
        decided, stop = self.world.decided, self.world.stop_signal
        by_count = self._cadence.iterations is not None and self.iteration % self._cadence.iterations == 0
        due = self._save_wanted or decided.save or by_count or stop or decided.time_up
        if due and self.iteration != self._saved_iteration:
            self._save()
        if stop:
            self._emit({"event": "stopped", "signal": stop})
            self._session("stopped", signal=stop)
            raise Stopped(stop)
        self._ended = decided.time_up

    def every(self, num_iterations: int) -> bool:
        """Whether this iteration is one of every `num_iterations`, or the last; the model is then agreed on.

        Raises UserError where that is no number of iterations.
        """
        if num_iterations < 1:
            raise UserError(f"something every {num_iterations} iterations", "a cadence is 1 or more", "give 1 or more")
        due = (self.iteration + 1) % num_iterations == 0 or self.iteration + 1 == self.total
        if due:
            self.world.drain()
            self._synchronised = True
        return due

    def log(self, values: StepStats | Mapping[str, float], prefix: str = "train") -> None:
        """Add values to this iteration's row; a step's statistics are written once the device has them."""
        assert self._row is not None, "log belongs inside the loop over run.iterations"
        self._row.entries.append((prefix, values))

    def save(self, score: float | None = None) -> None:
        """Ask for a checkpoint at the end of this iteration. `score`: lower is better, the best is never deleted; one
        that is not finite counts as none.
        """
        self._save_wanted = True
        self._score = score if score is not None and math.isfinite(score) else None

    def plan(self, *, global_batch: int, iterations: int, iteration_s: float | None = None) -> None:
        """State what is about to be done, before step 0. `iteration_s`: as measured by `Learner.rehearse`."""
        learner = next((k for k in self.keep.values() if isinstance(k, Learner)), None)
        facts = plan(self.world, learner, global_batch, self.iteration, iterations, iteration_s)
        self._emit({**facts, "folder": str(self.folder.path)})

    # The end ----------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Inside a long iteration, a stop saves the state at its start: the iteration will be done again, alike. (At a
        boundary it has been saved and written already.)"""
        if isinstance(error, Stopped):
            if self._row is not None and self._snapshot is not None:
                if self.iteration != self._saved_iteration:
                    self._write(self._snapshot)
                self._emit({"event": "stopped", "signal": error.signum})
                self._session("stopped", signal=error.signum)
        elif isinstance(error, Exception) and self.world.environment.lock_fd is None:
            self._session("failed")  # else whoever launched the ranks writes it
        if error is not None:
            self._close()

    def finish(self, export: nn.Module | None = None) -> Summary:
        """Save, export the weights, and sum up. Every rank calls it."""
        self._drain()
        if self.iteration != self._saved_iteration:
            self._save()
        complete = self.iteration >= self.total
        metrics: dict[str, float] = {}
        if self.world.rank == 0:
            exported = self._export(export) if export is not None else None
            self._session("finished")
            rows = read_rows(self.folder.path / METRICS_FILE)
            for row in rows:
                metrics.update({k: v for k, v in row.items() if v is not None and k.startswith(RESULT_TAGS)})
            self._emit(
                {
                    "event": "finished",
                    "complete": complete,
                    "metrics": metrics,
                    "seconds": self.time_s,
                    "time_split": time_split(rows),
                    "goodput": goodput(rows, read_rows(self.folder.path / SESSIONS_FILE)),
                    "peak_memory_bytes": peak_memory_bytes(self.world.device),
                    "fingerprint": self._fingerprint,
                    "export": str(exported) if exported else None,
                }
            )
        metrics, fingerprint = self.world.comm.gather_objects((metrics, self._fingerprint))[0]
        self.world.stop.deferred = False
        self._close()
        return Summary(self.folder.path, self.iteration, complete, metrics, fingerprint)

    def _warn_of_export(self, model: nn.Module) -> None:
        """Say before step 0, not after the last one, that a model cannot be exported."""
        try:
            describe(model)
        except UserError as error:
            self._emit({"event": "warning", "text": f"cannot be exported: {error.found}; {error.do}"})

    def _export(self, model: nn.Module) -> Path | None:
        try:
            return export_model(model, self.folder.path / "export")
        except UserError as error:
            self._emit({"event": "warning", "text": f"not exported: {error.found}; {error.do}"})
            return None

    # Inside -----------------------------------------------------------------------------------------------------------

    @property
    def time_s(self) -> float:
        """Seconds of all sessions that led here, as far as their work was kept."""
        return self._time_offset_s + time.perf_counter() - self._began

    def _clock_requests(self) -> tuple[bool, bool]:
        now = time.perf_counter()
        save = self._cadence.interval_s is not None and now - self._saved_at > self._cadence.interval_s
        return save, time.monotonic() > self._ends_s

    def _drain(self) -> None:
        self.world.drain()
        self._write_rows()

    def _state(self) -> dict[str, dict[str, Any]]:
        return {name: kept.state_dict() for name, kept in self.keep.items()}

    def _save(self) -> None:
        self._drain()
        self._write(HostState.of(self._state()))
        self.world.saved()
        self._save_wanted, self._score, self._saved_at = False, None, time.perf_counter()

    def _write(self, state: HostState) -> None:
        start = time.perf_counter()
        if self.world.rank == 0:
            measured = {n: k.measured for n, k in self.keep.items() if isinstance(k, Learner)}
            facts = {
                "time_s": self.time_s,
                "score": self._score,
                "ranks": self.world.size,
                "measured": {"deal": list(self.world.assignment.bounds), **measured},
                "metrics_bytes": self._journals[METRICS_FILE].sync(),
                "events_bytes": self._journals[EVENTS_FILE].sync(),
            }
            path = checkpoint.write(self.folder.checkpoints, self.iteration, state, facts)
            checkpoint.rotate(self.folder.checkpoints)
            self._fingerprint = checkpoint.read_manifest(path)["fingerprint"]
            self._emit({"event": "saved", "checkpoint": str(path), "seconds": time.perf_counter() - start})
        self._saved_iteration = self.iteration
        self._save_s += time.perf_counter() - start

    def _write_rows(self) -> None:
        while self._rows and self._rows[0].settled:
            row = close_row(self._rows.pop(0), self.world.device)
            if self.world.rank == 0:
                self._journals[METRICS_FILE].append(row)

    def _emit(self, event: dict[str, Any]) -> None:
        if self.world.rank == 0 and self._journals:
            self._journals[EVENTS_FILE].append({**event, "iteration": self.iteration, "time_s": self.time_s})

    def _session(self, event: str, **facts: Any) -> None:
        if self.world.rank == 0 and self._journals:
            self._journals[SESSIONS_FILE].append(
                {"event": event, "time": time.time(), "iteration": self.iteration, **facts}
            )

    def _close(self) -> None:
        for journal in self._journals.values():
            journal.close()
        self._journals = {}
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
