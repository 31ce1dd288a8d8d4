"""One rank of a short run: it joins the others, trains, and records its collectives."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch

from ranks.engine.distributed.session import PhaseTimes
from ranks.engine.distributed.world import World
from ranks.engine.runs.metrics_rows import peak_memory_bytes
from ranks.engine.runs.provenance import cpu_name
from ranks.hardware.scale.record import RankRecord, TimedCall
from ranks.hardware.short_runs.capacity import capacity_of_rank
from ranks.hardware.short_runs.clocks import WallClock
from ranks.hardware.short_runs.job import Job
from ranks.hardware.short_runs.recorded_comm import RecordedComm


def record_rank(job: Job, folder: Path, seconds: float) -> RankRecord:
    """Train for so long, with the run in `folder`. Every rank calls it; all are on one machine."""
    short = job.shortened(folder, f"{seconds:.1f}s")
    world = World.join(short.engine, workload=short.workload)
    world.process_env = replace(world.process_env, started_ns=None)  # the time counts from the start of the run
    clock = WallClock(world.device)
    comm = RecordedComm(world.comm, clock)
    comm.iteration = lambda: world.session.times
    world.comm = comm
    short.train(short.config, world)
    clock.stop()
    calls = [
        TimedCall(c.kind, c.num_bytes, *map(clock.seconds, (c.start, c.issued, c.wait, c.end))) for c in comm.calls
    ]
    data_s = [times.seconds.get("data", 0.0) if isinstance(times, PhaseTimes) else 0.0 for times in comm.iterations]
    device = torch.cuda.get_device_name(world.device) if world.device.type == "cuda" else cpu_name()
    memory = peak_memory_bytes(world.device), capacity_of_rank(world.device, world.size)
    world.leave()
    return RankRecord(world.rank, device, tuple(calls), tuple(comm.first_calls), tuple(data_s), *memory)


def record_file(folder: Path, rank: int) -> Path:
    """Where a rank leaves its record."""
    return folder / f"rank-{rank}.json"


def write(record: RankRecord, folder: Path) -> None:
    """Leave the record for the process that started the ranks."""
    record_file(folder, record.rank).write_text(json.dumps(record.as_json()) + "\n", encoding="utf-8")


def read(folder: Path, num_ranks: int) -> list[RankRecord]:
    """The records of all ranks. Raises OSError, KeyError, TypeError or ValueError."""
    files = (record_file(folder, rank) for rank in range(num_ranks))
    return [RankRecord.of_json(json.loads(file.read_text(encoding="utf-8"))) for file in files]
