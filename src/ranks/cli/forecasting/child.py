"""The process that records a profile: `python -m ranks.cli.forecasting.child REQUEST WORKLOAD FLAGS`. It prints the
trace, the name and memory of the device, what a rank needs of it, and the identity of the recorded run."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ranks.cli.flags.settings import resolve
from ranks.errors import UserError
from ranks.launch.env_vars import set_allocator_defaults, set_cuda_defaults

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
    fits_first: bool = False
    """Measure the memory with small passes first, and record nothing where the whole ones do not fit."""
    memory_only: bool = False
    """Measure the memory, and record nothing."""


def main(argv: list[str]) -> None:
    """Run the workload as rank 0 of several and print what it did."""
    asked = TraceRequest(**json.loads(argv[0]))
    settings = resolve(argv[1], argv[2:])
    set_cuda_defaults(os.environ, deterministic=settings.engine.exact or settings.engine.deterministic)
    set_allocator_defaults(os.environ)  # as `train` does: torch reads them when CUDA starts
    import torch

    from ranks.engine.distributed.malloc import keep_freed_memory
    from ranks.engine.runs.provenance import cpu_name
    from ranks.hardware.forecast.memory import measure_need
    from ranks.hardware.forecast.memory_need import TIGHT
    from ranks.hardware.forecast.record import (
        checkpoint_bytes,
        ran_out_of_memory,
        record,
        record_steady,
        run_of_recording,
    )
    from ranks.hardware.short_runs.capacity import capacity_bytes
    from ranks.hardware.short_runs.job import Job

    job = Job(settings.workload, settings.module.train, settings.config, settings.engine)
    folder, device = Path(asked.folder), torch.device(asked.device)
    if device.type == "cpu":
        keep_freed_memory()  # as a rank does
    trace = need = None
    with contextlib.redirect_stdout(sys.stderr):
        if asked.fits_first or asked.memory_only:
            need = measure_need(job, device, asked.num_ranks, folder)
        memory_bytes = capacity_bytes(device, asked.num_ranks)
        # torch splits a pass that a GPU has no memory for; on the CPU the kernel ends this process, or others
        most_bytes = memory_bytes if device.type == "cuda" else TIGHT * memory_bytes / asked.num_ranks
        if asked.memory_only or (need is not None and need.peak_bytes > most_bytes):
            pass  # a run that does not fit is not tried
        elif asked.whole:
            trace = record(job, device, asked.num_ranks, folder, asked.budget_s, asked.started_s)
        else:
            trace = record_steady(job, device, asked.num_ranks, folder, asked.budget_s)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()
    answer: dict[str, Any] = {"trace": trace and trace.as_json(), "device": name, "memory_bytes": memory_bytes}
    answer |= {"need": need and asdict(need), "ran_out": ran_out_of_memory(folder)}
    answer |= {"checkpoint_bytes": checkpoint_bytes(folder)}
    run = {"identity": {}, "code": {}} if asked.memory_only else run_of_recording(folder)
    answer |= {"identity": run["identity"], "code": run["code"]}  # `train` may fill in settings
    print(f"\n{MARK}{json.dumps(answer)}", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        print(f"{error.found}; {error.do}", file=sys.stderr)
        sys.exit(error.exit_code)
