"""The process that records a profile: `python -m ranks.cli.forecasting.child REQUEST WORKLOAD FLAGS`. It prints the
trace, the name and memory of the device, and the identity of the recorded run."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ranks.cli.flags.settings import resolve
from ranks.errors import UserError

if TYPE_CHECKING:
    import torch

MARK = "trace: "
"""Begins the line of the result: a workload may print other lines."""


@dataclass(frozen=True)
class TraceRequest:
    """What the parent asks for."""

    num_ranks: int
    device: str
    budget_s: float
    started_s: float
    whole: bool = True
    """Also the times of start, evaluation and save."""
    folder: str = ""
    """Of the short runs. The parent removes it."""


def main(argv: list[str]) -> None:
    """Run the workload as rank 0 of several and print what it did."""
    asked = TraceRequest(**json.loads(argv[0]))
    settings = resolve(argv[1], argv[2:])
    import torch

    from ranks.engine.runs.provenance import cpu_name
    from ranks.hardware.forecast.record import record, record_steady, run_of_recording
    from ranks.hardware.short_runs.job import Job

    job = Job(settings.workload, settings.module.train, settings.config, settings.engine)
    folder, device = Path(asked.folder), torch.device(asked.device)
    with contextlib.redirect_stdout(sys.stderr):
        if asked.whole:
            trace = record(job, device, asked.num_ranks, folder, asked.budget_s, asked.started_s)
        else:
            trace = record_steady(job, device, asked.num_ranks, folder, asked.budget_s)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()
    answer = {"trace": trace.as_json(), "device": name, "memory_bytes": _memory_bytes(device)}
    run = run_of_recording(folder)
    answer |= {"identity": run["identity"], "code": run["code"]}  # `train` may fill in settings
    print(f"\n{MARK}{json.dumps(answer)}", flush=True)


def _memory_bytes(device: torch.device) -> int:
    """What a GPU has, or what this process may allocate now."""
    import psutil
    import torch

    from ranks.engine.distributed.cgroup import memory_left

    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return memory_left(psutil.virtual_memory().available)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        print(f"{error.found}; {error.do}", file=sys.stderr)
        sys.exit(error.exit_code)
