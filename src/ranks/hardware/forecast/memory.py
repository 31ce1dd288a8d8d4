"""Measure how much memory a rank needs, by short runs with smaller passes.

So a workload that does not fit is never run at its size. memory_need.py has the model.
"""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from ranks.engine.distributed.malloc import LARGEST_KEPT, keep_freed_memory
from ranks.engine.runs.metrics_rows import peak_memory_bytes
from ranks.errors import UserError
from ranks.hardware.forecast.memory_need import MemoryNeed
from ranks.hardware.forecast.record import run_once
from ranks.hardware.short_runs.capacity import capacity_of_rank
from ranks.hardware.short_runs.job import ENDLESS, Job
from ranks.hardware.short_runs.release import release_memory
from ranks.hardware.short_runs.rows import first_update

PARTS = (8, 4)
"""The micro-batches of the two runs are these parts of the whole one."""
HALF, NEAR, HALF_FITS = 2, 0.5, 0.8
"""The part of a third run, made where the need is above the share `NEAR` of the memory and half a pass takes less than
`HALF_FITS` of it. A line from an eighth and a quarter makes an error of either peak seven times as large."""
SHORT = "0.1s"
"""Time of a run without evaluation. The end is agreed on one iteration later, so it has two or more."""
EVALUATED = 2
"""Iterations of the run that evaluates: the last iteration of a run does."""


class PeakOfPasses:
    """The peak between the save that begins a run and the one that ends it. A save needs many times the bytes of the
    weights, however small the passes are, and would hide how much they need."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.bytes = device, 0
        self._has_begun = False

    def watch(self) -> None:
        """See `run_once`."""
        if not self._has_begun:
            reset_peak(self.device)
        self._has_begun = True
        self.bytes = max(self.bytes, peak_memory_bytes(self.device))


def pass_items(job: Job, num_ranks: int) -> int | None:
    """Items of the largest pass of a rank; None where Config has no `global_batch`."""
    batch = getattr(job.config, "global_batch", None)
    if not isinstance(batch, int) or batch < 1:
        return None
    whole = math.ceil(batch / (job.engine.num_shards if job.engine.exact else num_ranks))
    return min(whole, job.engine.micro_batch or whole)


def measure_need(job: Job, device: torch.device, num_ranks: int, folder: Path) -> MemoryNeed | None:
    """Two short runs give the line, a third one evaluates. Where the need is near to what there is, a fourth one with
    half a pass makes the line more exact. None where passes are too small to make smaller, where no update is made in
    the short runs (self-play that fills its window first), and on systems that do not reset the peak of a process."""
    whole = pass_items(job, num_ranks)
    if whole is None or whole < PARTS[0] or not (device.type == "cuda" or sys.platform == "linux"):
        return None

    def peak(part: int, *, evaluates: bool = False) -> int | None:
        """Of a run whose passes are this part of the whole one. None: it made no update."""
        # as the whole pass will, whose buffers are larger by this factor; those of an evaluation are as large as ever
        keep_freed_memory(LARGEST_KEPT if evaluates else LARGEST_KEPT // part)
        items, of_passes = whole // part, PeakOfPasses(device)
        reset_peak(device)
        rows = run_once(
            _with_passes_of(items, job, num_ranks),
            device,
            num_ranks,
            folder / (f"evaluation-{items}" if evaluates else f"passes-of-{items}"),
            EVALUATED if evaluates else ENDLESS,
            evaluates=False,
            max_time=None if evaluates else SHORT,
            watch=of_passes.watch,
        ).rows
        if first_update(rows) is None:
            return None
        return peak_memory_bytes(device) if evaluates else of_passes.bytes

    try:
        if (
            (small := peak(PARTS[0])) is None
            or (larger := peak(PARTS[1])) is None
            or (evaluation := peak(PARTS[0], evaluates=True)) is None
        ):
            return None
        need = _line_through((whole // PARTS[0], small), (whole // PARTS[1], larger), whole, evaluation)
        if _is_near(need, capacity_of_rank(device, num_ranks)) and (half := peak(HALF)) is not None:
            need = _line_through((whole // PARTS[1], larger), (whole // HALF, half), whole, evaluation)
        return need
    finally:
        keep_freed_memory()
        reset_peak(device)


def _line_through(first: tuple[int, int], second: tuple[int, int], whole: int, evaluation: int) -> MemoryNeed:
    """From the items and peaks of two runs."""
    slope = max(0.0, (second[1] - first[1]) / (second[0] - first[0]))
    return MemoryNeed(whole, first[1] - slope * first[0], slope, evaluation_bytes=evaluation)


def _is_near(need: MemoryNeed, memory_bytes: float) -> bool:
    """Whether it matters how exact the line is, and half a pass surely fits."""
    half_bytes = need.fixed_bytes + need.pass_items / HALF * need.bytes_per_item
    return need.peak_bytes > NEAR * memory_bytes and half_bytes < HALF_FITS * memory_bytes


def _with_passes_of(items: int, job: Job, num_ranks: int) -> Job:
    """The job with passes of so many items: a smaller batch, or where Config refuses that the same one in parts."""
    engine = replace(job.engine, micro_batch=items)
    batch = items * (engine.num_shards if engine.exact else num_ranks)
    try:
        config = replace(job.config, global_batch=min(batch, job.config.global_batch))
    except (UserError, ValueError):
        config = job.config
    return replace(job, engine=engine, config=config)


def reset_peak(device: torch.device) -> None:
    """Give free memory back, and count the peak from now on."""
    release_memory(device)
    if device.type == "cuda":
        torch.cuda.init()  # to reset the peak does not start CUDA, and fails before it has started
        torch.cuda.reset_peak_memory_stats(device)
        return
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
