"""`ranks doctor`: whether a machine is fit for training, before it costs money."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.engine.distributed.process_env import available_cores
from ranks.errors import UserError
from ranks.hardware.doctor.doctor import diagnose
from ranks.hardware.doctor.finding import Asked, Finding, Severity
from ranks.launch.placement import MAX_CPU_RANKS

MARKS = {Severity.OK: "ok", Severity.NOTE: "note", Severity.WARNING: "WARN", Severity.FAILURE: "FAIL"}
GIB = 2**30


@dataclass(frozen=True)
class DoctorFlags:
    """Examine this machine: software, GPUs, memory, disk, limits, network, clock; and whether a workload fits.

    Each check runs in a process of its own with a time limit. Exit code 0, or 1 where a run would fail (with
    --strict also for warnings)."""

    workload: Positional[str | None] = None
    """Its name, or the path of your own file: whether it runs, fits into the memory, and waits for its data."""
    train: str = ""
    """Flags of ranks train for the workload, in one string: --train="--preset small"."""
    gpus: int | None = None
    """So many GPUs are expected; without it, as many as there are."""
    expect: str | None = None
    """Part of the name of each GPU, for example B200."""
    ranks: int | None = None
    """Processes of the run: one for each GPU, or without GPUs one for each core."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders: its disk is examined."""
    checkpoint_gb: float = 1.0
    """Space that the checkpoints of the run will take, in GiB."""
    only: tuple[str, ...] = ()
    """Only these checks: software, driver, compute, processor, memory, limits, disk, network, collective, clock."""
    strict: bool = False
    """Exit code 1 for warnings too."""
    json: bool = False
    """Print JSON in place of lines."""


def doctor(argv: Sequence[str]) -> int:
    """Print the findings as they come, and what to do about them."""
    flags = parse(DoctorFlags, argv, prog="ranks doctor")
    for name, value, least in (("gpus", flags.gpus, 0), ("ranks", flags.ranks, 1)):
        if value is not None and not least <= value <= 4096:
            raise UserError(f"--{name} {value}", f"a number from {least} to 4,096 is needed", "change it")
    if not 0 < flags.checkpoint_gb < 1e6:
        raise UserError(f"--checkpoint-gb {flags.checkpoint_gb}", "a size above 0 is needed", "change it")
    asked = Asked(
        flags.ranks or flags.gpus or min(available_cores(), MAX_CPU_RANKS),
        str(flags.runs_dir),
        flags.gpus,
        flags.expect,
        int(flags.checkpoint_gb * GIB),
        os.getpid(),
    )
    began, found = time.monotonic(), list[Finding]()
    if not flags.json:
        print(f"doctor: {platform.node()}, {platform.system()} {platform.machine()}", flush=True)
    for findings in chain(diagnose(asked, flags.only), of_workload(flags, asked.ranks)):
        found += findings
        for finding in findings if not flags.json else ():
            print("\n".join(lines(finding)), flush=True)
    failures, warnings = (
        sum(f.severity == severity for f in found) for severity in (Severity.FAILURE, Severity.WARNING)
    )
    if flags.json:
        print(
            json.dumps({"failures": failures, "warnings": warnings, "findings": [f.as_json() for f in found]}, indent=2)
        )
    else:
        print(verdict(failures, warnings, time.monotonic() - began))
    return int(failures > 0 or (flags.strict and warnings > 0))


def of_workload(flags: DoctorFlags, ranks: int) -> Iterator[list[Finding]]:
    """What a short trace of one rank of the workload says; nothing where none is named."""
    if flags.workload is not None:
        from ranks.cli.forecasting.examine import examine_workload  # it imports torch, which may be broken

        yield list(examine_workload(flags.workload, flags.train, ranks, on_gpu=flags.gpus != 0))


def lines(finding: Finding) -> list[str]:
    """A finding as a person reads it: what was found, and below it what to do."""
    expected = f"; expected: {finding.expected}" if finding.expected else ""
    found = [f"  {MARKS[finding.severity]:<5} {finding.topic:<16} {finding.found}{expected}"]
    if finding.do:
        found.append(f"        {'do:':>16} {finding.do}")
    return found


def verdict(failures: int, warnings: int, seconds: float) -> str:
    """The last line."""
    if not failures and not warnings:
        return f"fit for training ({seconds:.0f} s)"
    counts = [
        f"{count} {name}{'s' * (count > 1)}" for count, name in ((failures, "failure"), (warnings, "warning")) if count
    ]
    end = "a run would fail here" if failures else "a run would work here"
    return f"{' and '.join(counts)}: {end} ({seconds:.0f} s)"
