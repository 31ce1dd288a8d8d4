"""`ranks doctor`: whether a machine is fit for training, before it costs money."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.flags.settings import resolve
from ranks.cli.flags.split import split_flags
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.errors import UserError, nearest
from ranks.hardware.catalogue.gpus import catalogue, spelled, squash
from ranks.hardware.doctor.doctor import NODES, diagnose, diagnose_nodes
from ranks.hardware.doctor.finding import Asked, Finding, Severity, note
from ranks.hardware.doctor.nodes.place import NodePlace, place_of_flags, place_of_variables
from ranks.launch.placement import MAX_CPU_RANKS

MARKS = {Severity.OK: "ok", Severity.NOTE: "note", Severity.WARNING: "WARN", Severity.FAILURE: "FAIL"}
GIB, LEAST_ROOM = 2**30, 64 * 2**20


@dataclass(frozen=True)
class DoctorFlags:
    """Examine this machine: software, GPUs, memory, disk, limits, network, clock; and whether a workload fits.
    On several machines at once also what differs between them, and their links.

    Each check runs in a process of its own with a time limit. Exit code 0, or 1 where a run would fail (with
    --strict also for warnings)."""

    workload: Positional[str | None] = None
    """Its name, or the path of your own file: whether it runs, fits into the memory, and waits for its data."""
    train: str = ""
    """Flags of ranks train for the workload, in one string: --train="--preset small"."""
    gpus: int | None = None
    """So many GPUs are expected; without it, as many as there are."""
    expect: str | None = None
    """Part of the name of each GPU, and how many there are: B200:8, or B200 for any number."""
    ranks: int | None = None
    """Processes of the run: one for each GPU, or without GPUs one for each core."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders: its disk is examined."""
    checkpoint_gb: float | None = None
    """Space that the checkpoints of the run will take, in GiB. By default 1; those of a workload are measured."""
    only: tuple[str, ...] = ()
    """Only these checks: software, driver, compute, processor, memory, limits, disk, network, collective, clock,
    nodes."""
    nodes: int = 1
    """Machines of the run. The same command on each of them, with its own --node-rank. Under torchrun and Slurm it
    is known."""
    node_rank: int = 0
    """The number of this machine, from 0 on."""
    rdzv_endpoint: str | None = None
    """HOST:PORT of node 0, where the nodes meet, as torchrun has it."""
    wait: float = 60.0
    """Seconds that nodes wait for each other."""
    link: float | None = None
    """The rate of the network between the nodes in Gbit/s; without it, what the interface says."""
    strict: bool = False
    """Exit code 1 for warnings too."""
    json: bool = False
    """Print JSON in place of lines."""


def doctor(argv: Sequence[str]) -> int:
    """Print the findings as they come, and what to do about them."""
    flags = parse(DoctorFlags, argv, prog="ranks doctor")
    for name, value, least in (("gpus", flags.gpus, 0), ("ranks", flags.ranks, 1)):
        if value is not None and not least <= value <= 4096:
            raise UserError(f"--{name} {value}", f"a number from {least} to 4,096 is needed", f"give --{name} 8")
    if flags.checkpoint_gb is not None and not 0 < flags.checkpoint_gb < 1e6:
        raise UserError(f"--checkpoint-gb {flags.checkpoint_gb}", "a size above 0 is needed", "give --checkpoint-gb 20")
    gpus, gpu_name = expected_gpus(flags)
    if flags.workload is not None:
        resolve(flags.workload, split_flags(flags.train), outline=True)  # a wrong name is found before the checks
    place = place_of(flags)
    if place is not None and not place.is_first_process:
        return 0
    if place is None and NODES in flags.only:
        do = "on each machine: --nodes N --node-rank R --rdzv-endpoint HOST:PORT"
        raise UserError(f"--only {NODES}", "one machine, which has nothing to be compared with", do)
    asked = Asked(
        flags.ranks or gpus or min(available_cores(), MAX_CPU_RANKS),
        str(flags.runs_dir),
        gpus,
        gpu_name,
        checkpoint_bytes(flags),
        os.getpid(),
        link_gbit=flags.link,
        wait_s=flags.wait,
    )
    if place is not None:
        meeting = place.meeting
        where = {"meeting": str(meeting), "meeting_name": meeting.name, "served_by_agent": meeting.served_by_agent}
        asked = replace(asked, nodes=place.nodes, node=place.node, **where)
    began, found = time.monotonic(), list[Finding]()
    if not flags.json:
        print(f"doctor: {platform.node()}, {platform.system()} {platform.machine()}", flush=True)
    for findings in every_check(flags, asked):
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


def checkpoint_bytes(flags: DoctorFlags) -> int:
    """Room for checkpoints that the check of the disk asks for. The dry run of a workload measures its own."""
    if flags.checkpoint_gb is not None:
        return int(flags.checkpoint_gb * GIB)
    return GIB if flags.workload is None else LEAST_ROOM


def expected_gpus(flags: DoctorFlags) -> tuple[int | None, str | None]:
    """Number and name of the GPUs that `--gpus` and `--expect` name."""
    name, colon, count = (flags.expect or "").partition(":")
    if not colon:
        return flags.gpus, flags.expect
    if not name or not (count.isascii() and count.isdecimal() and 1 <= int(count) <= 4096):
        raise UserError(f"--expect {flags.expect}", "a GPU and a number from 1 to 4,096 are needed", "--expect B200:8")
    if flags.gpus not in (None, int(count)):
        raise UserError(f"--gpus {flags.gpus} --expect {flags.expect}", "two numbers of GPUs", "leave --gpus out")
    return int(count), name


def place_of(flags: DoctorFlags) -> NodePlace | None:
    """Which node this is; None on one machine. Raises UserError."""
    if not 1 <= flags.wait <= 3600:
        raise UserError(f"--wait {flags.wait:g}", "seconds from 1 to 3,600 are needed", "give --wait 60")
    if flags.link is not None and not 1e-3 <= flags.link <= 1e5:
        raise UserError(f"--link {flags.link:g}", "a rate from 0.001 to 100,000 Gbit/s is needed", "give --link 25")
    if flags.nodes != 1 or flags.rdzv_endpoint is not None:
        return place_of_flags(flags.nodes, flags.node_rank, flags.rdzv_endpoint)
    return place_of_variables(os.environ, flags.runs_dir)


def every_check(flags: DoctorFlags, asked: Asked) -> Iterator[list[Finding]]:
    """This machine, then the workload, then the other machines, which compare the workload."""
    yield unknown_name(asked.expect)
    only_nodes = flags.only == (NODES,)
    yield from () if only_nodes else diagnose(asked, flags.only)
    if flags.workload is not None:
        from ranks.cli.forecasting.examine import examine_workload  # it imports torch, which may be broken

        examined = examine_workload(flags.workload, flags.train, asked.ranks, flags.runs_dir, on_gpu=flags.gpus != 0)
        yield examined.findings
        asked = replace(asked, workload=examined.identity)
    if asked.nodes > 1 and (not flags.only or NODES in flags.only):
        yield from diagnose_nodes(asked)


def unknown_name(expect: str | None) -> list[Finding]:
    """A note about a GPU of --expect that the catalogue does not have: a wrong name, or a newer card."""
    names = [gpu.name for gpu in catalogue()]
    if expect is None or spelled(expect) or any(squash(expect) in squash(name) for name in names):
        return []
    said = nearest(expect.upper(), names, "the driver's name of a card is compared with --expect")
    return [note("gpu name", f"the catalogue of GPUs has no {expect}", said)]


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
