"""Measure how much memory a rank needs, by short runs with smaller passes.

So a workload that does not fit is never run at its size. memory_need.py has the model.
"""

from __future__ import annotations

import ctypes
import gc
import math
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from ranks.engine.runs.metrics_rows import peak_memory_bytes
from ranks.errors import UserError
from ranks.hardware.forecast.memory_need import MemoryNeed
from ranks.hardware.forecast.record import run_once
from ranks.hardware.short_runs.job import ENDLESS, Job
from ranks.hardware.short_runs.rows import first_update

PARTS = (8, 4)
"""The micro-batches of the two runs are these parts of the whole one."""
SHORT = "0.1s"
"""Time of a run without evaluation. The end is agreed on one iteration later, so it has two or more."""
EVALUATED = 2
"""Iterations of the run that evaluates: the last iteration of a run does."""
LARGEST_IN_HEAP = 32 * 2**20
"""glibc maps larger buffers on their own and gives them back at once. Smaller ones may leave holes in its heap."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of mallopt (glibc, malloc.h)."""


def pass_items(job: Job, num_ranks: int) -> int | None:
    """Items of the largest pass of a rank; None where Config has no `global_batch`."""
    batch = getattr(job.config, "global_batch", None)
    if not isinstance(batch, int) or batch < 1:
        return None
    whole = math.ceil(batch / (job.engine.num_shards if job.engine.exact else num_ranks))
    return min(whole, job.engine.micro_batch or whole)


def measure_need(job: Job, device: torch.device, num_ranks: int, folder: Path) -> MemoryNeed | None:
    """Two short runs give the line, a third one evaluates. None where passes are too small to make smaller, where no
    update is made in the short runs (self-play that fills its window first), and on systems that do not reset the peak
    of a process."""
    whole = pass_items(job, num_ranks)
    if whole is None or whole < PARTS[0] or not (device.type == "cuda" or sys.platform == "linux"):
        return None
    sizes, peaks = [whole // part for part in PARTS], list[int]()
    for part, items, evaluates in zip((*PARTS, PARTS[0]), (*sizes, sizes[0]), (False, False, True), strict=True):
        _map_buffers_above(LARGEST_IN_HEAP // part)  # as the whole pass will: its buffers are larger by this factor
        reset_peak(device)
        rows = run_once(
            _with_passes_of(items, job, num_ranks),
            device,
            num_ranks,
            folder / (f"evaluation-{items}" if evaluates else f"passes-of-{items}"),
            EVALUATED if evaluates else ENDLESS,
            evaluates=False,
            max_time=None if evaluates else SHORT,
        ).rows
        if first_update(rows) is None:
            return None
        peaks.append(peak_memory_bytes(device))
    _map_buffers_above(LARGEST_IN_HEAP)
    reset_peak(device)
    slope = max(0.0, (peaks[1] - peaks[0]) / (sizes[1] - sizes[0]))
    return MemoryNeed(whole, peaks[0] - slope * sizes[0], slope, evaluation_bytes=peaks[2])


def _with_passes_of(items: int, job: Job, num_ranks: int) -> Job:
    """The job with passes of so many items: a smaller batch, or where Config refuses that the same one in parts."""
    engine = replace(job.engine, micro_batch=items)
    batch = items * (engine.num_shards if engine.exact else num_ranks)
    try:
        config = replace(job.config, global_batch=min(batch, job.config.global_batch))
    except (UserError, ValueError):
        config = job.config
    return replace(job, engine=engine, config=config)


def _map_buffers_above(num_bytes: int) -> None:
    """Ask the kernel for each larger buffer on its own."""
    with suppress(OSError, AttributeError):  # a C library without mallopt
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, num_bytes)
        libc.mallopt(M_TRIM_THRESHOLD, 2 * num_bytes)


def reset_peak(device: torch.device) -> None:
    """Give free memory back, and count the peak from now on."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.init()  # to reset the peak does not start CUDA, and fails before it has started
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        return
    with suppress(OSError, AttributeError):  # a C library without malloc_trim
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
