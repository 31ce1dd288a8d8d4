"""CPU cores, and who else uses them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil

from ranks.engine.distributed.rendezvous.cgroup import cpu_quota
from ranks.engine.distributed.rendezvous.process_env import available_cores, default_threads
from ranks.errors import UserError
from ranks.hardware.doctor.finding import Asked, Finding, failure, ok, warning

SAMPLE_S = 0.7
BUSY = 0.25
"""Foreign processes may use this share of the cores."""
BUSY_PROCESS, NAMED = 0.02, 3
"""Cores that a busy process uses, and how many of them are named."""


@dataclass(frozen=True)
class ProcessorFacts:
    """Cores, and the load of processes that are not ours."""

    cores: int
    """That this process may use."""
    logical: int
    """That the machine has."""
    foreign: list[tuple[int, str, float]] = field(default_factory=list[tuple[int, str, float]])
    """(process, name, cores) of busy processes, the busiest first."""
    foreign_cores: float = 0.0
    threads_error: str = ""
    """What is wrong with OMP_NUM_THREADS."""
    quota: float | None = None
    """Cores that the container may use; None without a limit."""


def measure(asked: Asked) -> ProcessorFacts:
    """Sample the CPU time of all processes."""
    before, began = _times(asked.doctor_pid), time.monotonic()
    time.sleep(SAMPLE_S)
    after, seconds = _times(asked.doctor_pid), time.monotonic() - began
    used = [(pid, name, (cpu - before[pid][1]) / seconds) for pid, (name, cpu) in after.items() if pid in before]
    used.sort(key=lambda row: -row[2])
    try:
        default_threads()
        error = ""
    except UserError as wrong:
        error = wrong.asked
    busy = [(pid, name, round(cores, 2)) for pid, name, cores in used if cores > BUSY_PROCESS]
    foreign = sum(cores for _, _, cores in used)
    return ProcessorFacts(available_cores(), os.cpu_count() or 1, busy, foreign, error, cpu_quota())


def _times(doctor: int) -> dict[int, tuple[str, float]]:
    """Name and CPU seconds of each process that is neither the doctor nor one of its descendants."""
    ours = {doctor, os.getpid()}
    with contextlib.suppress(psutil.Error):
        ours |= {child.pid for child in psutil.Process(doctor).children(recursive=True)}
    found: dict[int, tuple[str, float]] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid not in ours:
                times = process.cpu_times()
                found[process.pid] = process.name(), times.user + times.system
    return found


def judge(facts: ProcessorFacts, asked: Asked) -> Iterator[Finding]:
    """Enough cores, and free ones."""
    here = f"{facts.cores} of {facts.logical}" if facts.cores != facts.logical else str(facts.cores)
    if facts.threads_error:
        yield failure("cpu", facts.threads_error, "a number of threads", "unset OMP_NUM_THREADS")
    if facts.quota is not None and facts.quota < min(asked.ranks, facts.logical):
        found = f"the container may use {facts.quota:g} of {facts.logical} cores"
        do = f"docker run --cpus {facts.logical}, or in Slurm --cpus-per-task; or fewer ranks"
        yield warning("cpu", found, f"{asked.ranks}, one for each rank", do)
    elif asked.ranks > facts.cores:
        do = f"use at most {facts.cores} ranks, or rent more cores"
        yield warning("cpu", f"{here} cores", f"{asked.ranks}, one for each rank", do)
    if facts.foreign_cores > BUSY * facts.cores:
        names = ", ".join(f"{name} ({pid}) {cores:.1f}" for pid, name, cores in facts.foreign[:NAMED])
        found = f"other processes use {facts.foreign_cores:.1f} of {facts.cores} cores: {names}"
        yield warning("cpu", found, "free cores", "end them, or expect slower steps and wrong measurements")
    elif asked.ranks <= facts.cores and (facts.quota is None or facts.quota >= asked.ranks):
        yield ok("cpu", f"{here} cores, free")
