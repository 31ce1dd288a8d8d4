"""Record what one rank of several does: two short runs of the workload in a temporary folder, with `EchoComm`.

The first run has two iterations, an evaluation and a save. The second one has no evaluation and takes a given time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ranks.engine.distributed import precision
from ranks.engine.distributed.process_env import ProcessEnv, default_threads
from ranks.engine.distributed.world import World
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.folder import EVENTS_FILE
from ranks.hardware.forecast.echo_comm import EchoComm
from ranks.hardware.forecast.trace import Call, IterationTrace, Trace, iterations_of
from ranks.hardware.short_runs.clocks import WorkClock
from ranks.hardware.short_runs.job import ENDLESS, Job
from ranks.hardware.short_runs.recorded_comm import RecordedComm
from ranks.hardware.short_runs.rows import items_of, phases_of, plain_s, rows_of, run_folder, value

NO_PHASES = ("iteration", "evaluation", "save")


def record(job: Job, device: torch.device, num_ranks: int, folder: Path, budget_s: float, started_s: float) -> Trace:
    """The trace of rank 0 of `num_ranks`. `budget_s`: of the iterations that are recorded, at least three of them.
    `started_s`: when the command began, by `time.time`."""
    first = _run(job, device, num_ranks, folder / "first", 2, None)
    rows = first.rows
    start_s = first.began_s - started_s + max(0.0, value(rows[0], "time/iteration_s") - plain_s(rows[-1]))
    budget_s = max(budget_s, 4 * plain_s(rows[-1]))
    second = _run(job, device, num_ranks, folder / "second", ENDLESS, f"{budget_s:.1f}s")
    plain = second.rows[1:] if len(second.rows) > 1 else second.rows
    return Trace(
        num_ranks,
        second.iterations() if num_ranks > 1 else tuple(IterationTrace(plain_s(row), ()) for row in plain),
        phases_of(plain, NO_PHASES),
        items_of(plain),
        value(rows[-1], "time/evaluation_s"),
        first.save_s,
        start_s,
        int(max(value(row, "memory/peak_bytes") for row in [*rows, *plain])),
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
    short = job.shortened(folder, max_time, iterations)
    engine = short.engine
    precision.set_up(engine, device, engine.resolved().threads or default_threads())
    torch.manual_seed(engine.seed)
    clock = WorkClock(device)
    comm = RecordedComm(EchoComm(num_ranks), clock)
    world = World(engine, ProcessEnv("alone"), device, comm, job.workload)
    comm.iteration = lambda: world.session.times
    began = time.time()
    job.train(short.config, world)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    calls = [Call(c.kind, c.num_bytes, clock.seconds(c.start), clock.seconds(c.wait)) for c in comm.calls]
    return Recording(
        rows_of(folder),
        [calls[index].start_s for index in comm.first_calls],
        calls,
        began,
        max(
            (value(row, "seconds") for row in read_rows(run_folder(folder) / EVENTS_FILE) if row["event"] == "saved"),
            default=0.0,
        ),
    )
