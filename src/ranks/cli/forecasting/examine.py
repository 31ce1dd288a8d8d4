"""What `ranks doctor WORKLOAD` says of a workload."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage
from typing import Any

from ranks.cli.flags.settings import resolve
from ranks.cli.flags.split import split_flags
from ranks.cli.forecasting.child import TraceRequest
from ranks.cli.forecasting.measure import record_trace
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.engine.runs.checkpoints.checkpoint import KEEP
from ranks.errors import UserError
from ranks.hardware.doctor.finding import Finding, failure
from ranks.hardware.doctor.limited import within
from ranks.hardware.doctor.workload import RunPlace, WorkloadFacts, judge_workload
from ranks.launch.gpus import find_gpus

TRACE_S, LIMIT_S, GPUS_S = 1.5, 120.0, 5.0
"""Of the recorded iterations, of the whole recording, and of the driver's answer: a driver may hang."""
OTHERS_KEPT = 3
"""Next to the newest checkpoints: the best, the newest with finite weights, and the one that is being written."""


@dataclass(frozen=True)
class ExaminedWorkload:
    """What a dry run has shown."""

    findings: list[Finding]
    identity: Mapping[str, Any] | None
    """What all machines of a run must share: code, config, data; None where the dry run failed."""


def examine_workload(workload: str, train: str, ranks: int, runs_dir: Path, *, on_gpu: bool) -> ExaminedWorkload:
    """Record one of `ranks` ranks for some seconds and judge it. `train`: flags of `ranks train`. Raises UserError for
    wrong flags."""
    argv = split_flags(train)
    gpus = within(GPUS_S, find_gpus) if on_gpu else None
    device = "cuda:0" if gpus is not None and gpus.count else "cpu"
    threads = resolve(workload, argv, outline=True).engine.threads or max(1, available_cores() // ranks)
    asked = TraceRequest(ranks, device, TRACE_S, time.time(), whole=False, fits_first=True)
    try:
        found = record_trace(workload, [*argv, "--threads", str(threads)], asked, LIMIT_S)
    except UserError as error:
        return ExaminedWorkload([failure("workload", error.found, "a dry run that ends", error.do)], None)
    dry_run = WorkloadFacts(found.whole_trace, found.need, found.memory_bytes, found.ran_out, found.checkpoint_bytes)
    free = disk_usage(
        next(place for place in (runs_dir.absolute(), *runs_dir.absolute().parents) if place.is_dir())
    ).free
    place = RunPlace(ranks, device, available_cores(), str(runs_dir), free, KEEP + OTHERS_KEPT)
    findings = list(judge_workload(dry_run, place))
    of_run = found.identity
    settings = {"engine": {k: v for k, v in of_run["engine"].items() if k != "threads"}, "config": of_run["config"]}
    identity = {"code": found.code, "config": settings, "data": of_run.get("data")}
    return ExaminedWorkload(findings, identity)
