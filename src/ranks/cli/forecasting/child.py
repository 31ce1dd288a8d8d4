"""The process that records a profile: `python -m ranks.cli.forecasting.child ASKED WORKLOAD FLAGS`. It prints the trace
and the name of the device."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.settings import resolve

MARK = "trace: "
"""Begins the line of the result: a workload may print other lines."""


@dataclass(frozen=True)
class Asked:
    """What the parent asks for."""

    num_ranks: int
    device: str
    budget_s: float
    started_s: float


def main(argv: list[str]) -> None:
    """Run the workload as rank 0 of several and print what it did."""
    asked = Asked(**json.loads(argv[0]))
    settings = resolve(argv[1], argv[2:])
    import torch

    from ranks.engine.runs.provenance import cpu_name
    from ranks.hardware.forecast.record import record
    from ranks.hardware.short_runs.job import Job

    job = Job(settings.workload, settings.module.train, settings.config, settings.engine)
    with tempfile.TemporaryDirectory(prefix="ranks-profile-") as folder, contextlib.redirect_stdout(sys.stderr):
        device = torch.device(asked.device)
        trace = record(job, device, asked.num_ranks, Path(folder), asked.budget_s, asked.started_s)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()
    print(f"\n{MARK}{json.dumps({'trace': trace.as_json(), 'device': name})}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
