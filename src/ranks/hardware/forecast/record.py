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
SPEED = "_per_second"


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
    rows = first.rows
    start_s = first.began_s - started_s + max(0.0, _value(rows[0], "time/iteration_s") - _plain_s(rows[-1]))
    budget_s = max(budget_s, 4 * _plain_s(rows[-1]))
    second = _run(job, device, num_ranks, folder / "second", ENDLESS, f"{budget_s:.1f}s")
    plain = second.rows[1:] if len(second.rows) > 1 else second.rows
    return Trace(
        num_ranks,
        second.iterations() if num_ranks > 1 else tuple(IterationTrace(_plain_s(row), ()) for row in plain),
        _means(plain, PHASE, SUFFIX, NO_PHASES),
        _items(plain),
        _value(rows[-1], "time/evaluation_s"),
        first.save_s,
        start_s,
        int(max(_value(row, "memory/peak_bytes") for row in [*rows, *plain])),
    )


@dataclass(frozen=True)
class Recording:
    """One run."""

    rows: Sequence[Mapping[str, Any]]
    marks: Sequence[float]
    """Seconds at the first collective of each iteration."""
    calls: Sequence[Call]
    began_s: float
    """When the loop began, by `time.time`."""
    save_s: float
    """Of the save at the end."""

    def iterations(self) -> tuple[IterationTrace, ...]:
        """All but the first one, which warms up, and the last one, which the end cuts off."""
        found = iterations_of(self.marks[-len(self.rows) :], self.calls)
        return found[1:] if len(found) > 1 else found


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
    began = time.time()
    job.train(replace(job.config, **changes), world)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    run = RunFolder.of(folder, "trace").path
    return Recording(
        read_rows(run / METRICS_FILE),
        [comm.stopwatch.seconds(mark) for mark in comm.marks],
        comm.read(),
        began,
        max((_value(row, "seconds") for row in read_rows(run / EVENTS_FILE) if row["event"] == "saved"), default=0.0),
    )


def _plain_s(row: Mapping[str, Any]) -> float:
    """Seconds of an iteration without its evaluation and without saves."""
    return _value(row, "time/iteration_s") - _value(row, "time/evaluation_s") - _value(row, "time/save_s")


def _items(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What an iteration processes on all ranks, by kind."""
    names = [name for name in rows[0] if name.startswith(PHASE) and name.endswith(SPEED)]
    return {
        name.removeprefix(PHASE).removesuffix(SPEED): sum(_value(row, name) * _plain_s(row) for row in rows) / len(rows)
        for name in names
    }


def _value(row: Mapping[str, Any], name: str) -> float:
    return number(row, name) or 0.0


def _means(rows: Sequence[Mapping[str, Any]], prefix: str, suffix: str, without: Sequence[str]) -> dict[str, float]:
    """Means of the values with such names, by the middle of the name."""
    names = [name for name in rows[0] if name.startswith(prefix) and name.endswith(suffix)]
    middles = {name: name.removeprefix(prefix).removesuffix(suffix) for name in names}
    return {
        middle: sum(_value(row, name) for row in rows) / len(rows)
        for name, middle in middles.items()
        if middle not in without
    }
