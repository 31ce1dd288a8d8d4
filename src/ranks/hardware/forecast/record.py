"""Record what one rank of several does: short runs of the workload in a temporary folder, with `EchoComm`.

The first run has two iterations, an evaluation and a save. The others have no evaluation, and take a given time
together, or so many iterations as are needed where they are long.

    the whole run   0 ........................................................ iterations
    recorded        |first    |section 0     |section 1     |section 2     |section 3

An iteration that is one update is a function of its number, so each section is a run that begins inside the whole one:
work that begins late is seen. Games and rollouts follow from those before, so such a run is recorded from its start.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from ranks.engine.distributed import precision
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv, default_threads
from ranks.engine.distributed.requests import Requests
from ranks.engine.distributed.session import PhaseTimes
from ranks.engine.distributed.world import World
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.folder import EVENTS_FILE, RUN_FILE, RunFolder, listing
from ranks.engine.update.learner import SPLIT_WARNING
from ranks.errors import UserError
from ranks.hardware.forecast.echo_comm import EchoComm
from ranks.hardware.forecast.trace import Call, IterationTrace, Trace, iterations_of
from ranks.hardware.short_runs.clocks import WorkClock
from ranks.hardware.short_runs.host_use import HostUse
from ranks.hardware.short_runs.job import ENDLESS, Job
from ranks.hardware.short_runs.recorded_comm import RecordedComm
from ranks.hardware.short_runs.release import release_memory
from ranks.hardware.short_runs.rows import (
    Row,
    first_update,
    items_of,
    period_s,
    phases_of,
    plain_s,
    rows_of,
    run_folder,
    value,
)

NO_PHASES = ("iteration", "evaluation", "save")
LEAST, MOST_RUNS = 3, 4
SECTIONS, SECTION_ITERATIONS = 4, 6
"""The most sections, and the fewest iterations of one."""
SPARE = 3
"""More iterations than `LEAST` in a run of long ones: the first one, that of the first update, and the last one."""


def record(job: Job, device: torch.device, num_ranks: int, folder: Path, budget_s: float, started_s: float) -> Trace:
    """The trace of rank 0 of `num_ranks`. `budget_s`: of the iterations that are recorded, at least three of them.
    `started_s`: when the command began, by `time.time`."""
    begun_s = time.time()
    first = run_once(job, device, num_ranks, folder / "first", 2, evaluates=True)
    iteration_s = plain_s(first.rows[-1])
    sections = 0
    if not first.has_long_iterations:
        # each section builds the workload again, which should not take much longer than what is recorded
        most = min(budget_s / max(SECTION_ITERATIONS * iteration_s, 1e-6), 2 * budget_s / (first.ended_s - begun_s))
        sections = max(1, min(SECTIONS, int(most)))
    steady = record_steady(job, device, num_ranks, folder, budget_s, iteration_s, sections)
    evaluations_s = sum(value(row, "time/evaluation_s") for row in first.rows)
    saves_s = sum(first.saves_s)
    return replace(
        steady,
        evaluation_s=value(first.rows[-1], "time/evaluation_s"),
        save_s=saves_s / max(1, len(first.saves_s)),
        saves_with_evaluation=len(first.saves_s) > 1,
        start_s=max(0.0, first.ended_s - started_s - evaluations_s - saves_s - 2 * iteration_s),
        peak_bytes=max(steady.peak_bytes, _peak_bytes(first.rows)),
    )


def record_steady(
    job: Job,
    device: torch.device,
    num_ranks: int,
    folder: Path,
    budget_s: float,
    iteration_s: float = 0.0,
    sections: int = 0,
) -> Trace:
    """The trace without the times of start, evaluation and save. `iteration_s`: of an iteration, about. `sections`: of
    the run, in the middle of which iterations are recorded; 0: they are recorded from its start."""
    steady, busy_cores = _in_sections(job, device, num_ranks, folder / "sections", budget_s, sections)
    if len(steady) < LEAST:
        first = middle_of(0, 1, job.config.iterations) if sections else 0
        steady, busy_cores = _enough(job, device, num_ranks, folder / "steady", budget_s, iteration_s, first)
    rows = [row for row, _ in steady]
    iterations = tuple(iteration for _, iteration in steady)
    work_s = sum(iteration.work_s for iteration in iterations) / len(iterations)
    return Trace(
        num_ranks,
        iterations,
        phases_of(rows, NO_PHASES),
        items_of(rows),
        evaluation_s=0.0,
        save_s=0.0,
        saves_with_evaluation=False,
        start_s=0.0,
        peak_bytes=_peak_bytes(rows),
        host_cpu_s=None if busy_cores is None else busy_cores * work_s,
    )


def run_of_recording(folder: Path) -> dict[str, Any]:
    """The run.json of one of the runs that were recorded in a folder: identity, code and more."""
    made = next(path for path in sorted(folder.rglob(RUN_FILE)))
    return RunFolder(made.parent).read_run()


def ran_out_of_memory(folder: Path) -> bool:
    """Whether one of the runs that were recorded in a folder ran out of memory and went on with smaller passes."""
    events = (row for path in folder.rglob(EVENTS_FILE) for row in read_rows(path))
    return any(str(row.get("text", "")).startswith(SPLIT_WARNING) for row in events)


def checkpoint_bytes(folder: Path) -> int:
    """The size of the largest checkpoint that was saved in the runs of a folder; 0 without one. Kept files are not in
    it: they grow with the run."""
    runs = [RunFolder(path.parent) for path in folder.rglob(RUN_FILE)]
    saved = [path for run in runs for path in listing(run.checkpoints)]
    return max((sum(file.stat().st_size for file in path.iterdir()) for path in saved), default=0)


Steady = tuple[Sequence[tuple[Row, IterationTrace]], float | None]
"""Iterations of a run that does what it will do, and the cores that it keeps busy."""


def _in_sections(
    job: Job, device: torch.device, num_ranks: int, folder: Path, budget_s: float, sections: int
) -> Steady:
    """Iterations from the middle of each of two or more equal sections of the run."""
    found: list[tuple[Row, IterationTrace]] = []
    busy_cores: list[float] = []
    for section in range(sections if sections > 1 else 0):
        first, limit = middle_of(section, sections, job.config.iterations), f"{budget_s / sections:.1f}s"
        place = folder / str(section)
        run = run_once(job, device, num_ranks, place, ENDLESS, evaluates=False, max_time=limit, first_iteration=first)
        found += run.iterations()
        busy_cores += [run.busy_cores] if run.busy_cores is not None else []
    return found, statistics.fmean(busy_cores) if busy_cores else None


def middle_of(section: int, sections: int, iterations: int) -> int:
    """The iteration in the middle of one of the equal sections of a run."""
    return iterations * (2 * section + 1) // (2 * sections)


def _enough(
    job: Job, device: torch.device, num_ranks: int, folder: Path, budget_s: float, iteration_s: float, first: int
) -> Steady:
    """Iterations from number `first` on, those after the first update. Self-play may fill its window before that, so a
    longer run is made where there are too few; one without updates is taken as it is."""
    found: Sequence[tuple[Row, IterationTrace]] = ()
    busy_cores: float | None = None
    iterations = LEAST + SPARE
    for attempt in range(MOST_RUNS):
        is_long = budget_s < iterations * iteration_s
        length, limit = (iterations, None) if is_long else (ENDLESS, f"{budget_s:.1f}s")
        place, end = folder / str(attempt), first + length
        run = run_once(job, device, num_ranks, place, end, evaluates=False, max_time=limit, first_iteration=first)
        found, busy_cores = run.iterations(), run.busy_cores
        update = first_update([row for row, _ in found])
        if update is not None and len(found) - update >= LEAST:
            return found[update + 1 :] if len(found) - update > LEAST else found[update:], busy_cores
        budget_s, iterations = 3 * budget_s, 3 * iterations
    if not found:
        asked = f"to record {LEAST} iterations of {job.workload}"
        raise UserError(asked, f"not one ended within {budget_s / 3:.0f} s", "make its iterations shorter")
    return found, busy_cores


@dataclass(frozen=True)
class Recording:
    """One run."""

    rows: Sequence[Row]
    marks: Sequence[float]
    """Seconds at the first collective of each iteration."""
    calls: Sequence[Call]
    num_ranks: int
    ended_s: float
    """When `train` returned, by `time.time`."""
    saves_s: Sequence[float]
    busy_cores: float | None
    """By its processes; None where it had too few iterations."""
    has_long_iterations: bool
    """See `Run.iterations`."""

    def iterations(self) -> Sequence[tuple[Row, IterationTrace]]:
        """All but the first one, which warms up, and the last one, which the end cuts off."""
        rows = self.rows[1:-1]
        if self.num_ranks == 1:
            return [(row, IterationTrace(period_s(before, row), ())) for before, row in pairwise(self.rows[:-1])]
        traces = iterations_of(self.marks[-len(self.rows) :], self.calls)
        return list(zip(rows, traces[1:], strict=True))


class WatchedWorld(World):
    """A world in which `watch` is called between the parts of an update."""

    watch: Callable[[], None]

    def requests(self) -> Requests:
        self.watch()
        return super().requests()

    def decide(self, requests: Requests) -> None:
        self.watch()
        super().decide(requests)


def run_once(
    job: Job,
    device: torch.device,
    num_ranks: int,
    folder: Path,
    iterations: int,
    *,
    evaluates: bool,
    max_time: str | None = None,
    first_iteration: int = 0,
    watch: Callable[[], None] = lambda: None,
) -> Recording:
    """Run the workload as rank 0 of `num_ranks` in this process. `first_iteration`: where a run begins that has no long
    iterations. `watch`: is called after the first save, and before and after the passes of each update."""
    release_memory(device)
    short = job.shortened(folder, max_time, iterations, eval_every=1 if evaluates else ENDLESS)
    engine = short.engine
    precision.set_up(engine, device, engine.resolved().threads or default_threads())
    torch.manual_seed(engine.seed)
    clock = WorkClock(device)
    comm = RecordedComm(EchoComm(num_ranks), clock)
    world = WatchedWorld(engine, ProcessEnv("alone"), device, comm, job.workload)
    world.watch = watch
    world.first_iteration, session = first_iteration, world.session

    def times() -> PhaseTimes:
        nonlocal session
        session = world.session if world.session.attached else session
        return world.session.times

    comm.iteration = times
    world.stop.install()
    try:
        with HostUse(times) as host_use:
            job.train(short.config, world)
    finally:
        world.leave()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    ended_s = time.time()
    calls = [Call(c.kind, c.num_bytes, clock.seconds(c.start), clock.seconds(c.wait), c.on_host) for c in comm.calls]
    saves = (value(row, "seconds") for row in read_rows(run_folder(folder) / EVENTS_FILE) if row["event"] == "saved")
    return Recording(
        rows_of(folder),
        [calls[index].start_s for index in comm.first_calls],
        calls,
        num_ranks,
        ended_s,
        list(saves),
        host_use.cores,
        session.long_iterations,
    )


def _peak_bytes(rows: Sequence[Row]) -> int:
    return int(max(value(row, "memory/peak_bytes") for row in rows))
