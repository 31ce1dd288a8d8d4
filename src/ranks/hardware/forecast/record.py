"""Record what one rank of several does: two short runs of the workload in a temporary folder, with `TracingComm`.

The first run has two iterations, an evaluation and a save. The second one has no evaluation and takes a given time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from ranks.engine.config import RunConfig
from ranks.engine.distributed import precision
from ranks.engine.distributed.process_env import ProcessEnv, default_threads
from ranks.engine.distributed.world import World
from ranks.engine.files.jsonl import number, read_rows
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, RunFolder
from ranks.errors import UserError
from ranks.hardware.forecast.trace import Call, IterationTrace, Trace, iterations_of
from ranks.hardware.forecast.tracing_comm import TracingComm

ENDLESS = 1_000_000
"""Iterations of a run that the clock ends."""
NEVER = str(ENDLESS)
PHASE, SUFFIX = "time/", "_s"
NO_PHASES = ("iteration", "evaluation", "save")
SPEED, UPDATE = "_per_second", "train/"
LEAST, MOST_SESSIONS = 3, 5
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """The run to forecast, as its settings say."""

    workload: str
    train: Callable[[Any, World], Any]
    config: Any
    engine: RunConfig


def record(job: Job, device: torch.device, num_ranks: int, folder: Path, budget_s: float, started_s: float) -> Trace:
    """The trace of rank 0 of `num_ranks`. `budget_s`: of the iterations that are recorded, at least three of them.
    `started_s`: when the command began, by `time.time`."""
    first = _run(job, device, num_ranks, folder / "first", 2, None)
    plain_s = _plain_s(first.rows[-1])
    steady = record_steady(job, device, num_ranks, folder, max(budget_s, 4 * plain_s))
    return replace(
        steady,
        evaluation_s=_value(first.rows[-1], "time/evaluation_s"),
        save_s=first.save_s,
        start_s=first.began_s - started_s + max(0.0, _value(first.rows[0], "time/iteration_s") - plain_s),
        peak_bytes=max(steady.peak_bytes, _peak_bytes(first.rows)),
    )


def record_steady(job: Job, device: torch.device, num_ranks: int, folder: Path, budget_s: float) -> Trace:
    """The trace without the times of start, evaluation and save."""
    steady = _steady(job, device, num_ranks, folder / "steady", budget_s)
    rows = [row for row, _ in steady]
    return Trace(
        num_ranks,
        tuple(iteration for _, iteration in steady),
        _means(rows, PHASE, SUFFIX, NO_PHASES),
        _items(rows),
        evaluation_s=0.0,
        save_s=0.0,
        start_s=0.0,
        peak_bytes=_peak_bytes(rows),
    )


def _steady(
    job: Job, device: torch.device, num_ranks: int, folder: Path, budget_s: float
) -> Sequence[tuple[Row, IterationTrace]]:
    """Iterations of a run that does what it will do: those from the first update on. Self-play may fill its window
    before that, so the run is resumed for a longer time until it has updates; one without updates is taken as it
    is."""
    found: Sequence[tuple[Row, IterationTrace]] = ()
    for _ in range(MOST_SESSIONS):
        found = _run(job, device, num_ranks, folder, ENDLESS, f"{budget_s:.1f}s").iterations()
        updates = [index for index, (row, _) in enumerate(found) if any(name.startswith(UPDATE) for name in row)]
        if updates and len(found) - updates[0] >= LEAST:
            return found[updates[0] :]
        budget_s *= 3
    if not found:
        asked = f"to record {LEAST} iterations of {job.workload}"
        raise UserError(asked, f"not one ended within {budget_s / 3:.0f} s", "make its iterations shorter")
    return found


@dataclass(frozen=True)
class Recording:
    """One session of a run."""

    rows: Sequence[Row]
    marks: Sequence[float]
    """Seconds at the first collective of each iteration."""
    calls: Sequence[Call]
    num_ranks: int
    began_s: float
    """When the loop began, by `time.time`."""
    save_s: float
    """Of the save at the end."""

    def iterations(self) -> Sequence[tuple[Row, IterationTrace]]:
        """All but the first one, which warms up, and the last one, which the end cuts off."""
        rows = self.rows[1:-1]
        if self.num_ranks == 1:
            return [(row, IterationTrace(_plain_s(row), ())) for row in rows]
        traces = iterations_of(self.marks[-len(self.rows) :], self.calls)
        return list(zip(rows, traces[1:], strict=True))


def _run(
    job: Job, device: torch.device, num_ranks: int, folder: Path, iterations: int, max_time: str | None
) -> Recording:
    names = {f.name for f in fields(job.config)}
    if "iterations" not in names:
        asked = f"to forecast {job.workload}"
        raise UserError(asked, "its Config has no field `iterations`", "name the number of iterations so")
    changes = {"iterations": iterations} | ({"eval_every": ENDLESS} if "eval_every" in names else {})
    engine = replace(job.engine, runs_dir=folder, name="trace", save_every=NEVER, max_time=max_time)
    precision.set_up(engine, device, engine.resolved().threads or default_threads())
    torch.manual_seed(engine.seed)
    comm = TracingComm(num_ranks, device)
    world = World(engine, ProcessEnv("alone"), device, comm, job.workload)
    comm.iteration = lambda: world.session.times
    run = RunFolder.of(folder, "trace").path
    before = len(read_rows(run / METRICS_FILE))
    began = time.time()
    world.stop.install()
    try:
        job.train(replace(job.config, **changes), world)
    finally:
        world.leave()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return Recording(
        read_rows(run / METRICS_FILE)[before:],
        [comm.stopwatch.seconds(mark) for mark in comm.marks],
        comm.read(),
        num_ranks,
        began,
        max((_value(row, "seconds") for row in read_rows(run / EVENTS_FILE) if row["event"] == "saved"), default=0.0),
    )


def _plain_s(row: Row) -> float:
    """Seconds of an iteration without its evaluation and without saves."""
    return _value(row, "time/iteration_s") - _value(row, "time/evaluation_s") - _value(row, "time/save_s")


def _peak_bytes(rows: Sequence[Row]) -> int:
    return int(max(_value(row, "memory/peak_bytes") for row in rows))


def _items(rows: Sequence[Row]) -> dict[str, float]:
    """What an iteration processes on all ranks, by kind."""
    names = [name for name in rows[0] if name.startswith(PHASE) and name.endswith(SPEED)]
    return {
        name.removeprefix(PHASE).removesuffix(SPEED): sum(_value(row, name) * _plain_s(row) for row in rows) / len(rows)
        for name in names
    }


def _value(row: Row, name: str) -> float:
    return number(row, name) or 0.0


def _means(rows: Sequence[Row], prefix: str, suffix: str, without: Sequence[str]) -> dict[str, float]:
    """Means of the values with such names, by the middle of the name."""
    names = [name for name in rows[0] if name.startswith(prefix) and name.endswith(suffix)]
    middles = {name: name.removeprefix(prefix).removesuffix(suffix) for name in names}
    return {
        middle: sum(_value(row, name) for row in rows) / len(rows)
        for name, middle in middles.items()
        if middle not in without
    }
