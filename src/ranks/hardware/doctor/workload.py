"""Whether a workload fits on this machine: what a short trace of one rank says."""

from __future__ import annotations

from collections.abc import Iterator

from ranks.hardware.doctor.finding import Finding, failure, ok, warning
from ranks.hardware.forecast.trace import Trace

GIB = 2**30
TIGHT, WAITS = 0.9, 0.2
"""Shares of the memory in use, and of an iteration spent on loading, above which a warning is given."""


def judge_workload(trace: Trace, device: str, memory_bytes: int) -> Iterator[Finding]:
    """`trace`: of one of `trace.num_ranks` ranks. `memory_bytes`: what one GPU has, or what the ranks of a CPU machine
    may take together."""
    kind, number = next(iter(trace.items.items()), ("iterations", 1.0))
    yield ok("workload", f"an iteration takes {trace.work_s:.3g} s on {device}, {number / trace.work_s:,.4g} {kind}/s")
    yield _memory(trace, device, memory_bytes)
    loading = trace.phases_s.get("data", 0.0) / max(trace.work_s, 1e-12)
    found = f"{loading:.0%} of an iteration waits for data"
    if loading > WAITS:
        yield warning("loading", found, f"{WAITS:.0%} or less", "prepare the data once, or load less for each item")
    else:
        yield ok("loading", found)


def _memory(trace: Trace, device: str, memory_bytes: int) -> Finding:
    is_gpu = not device.startswith("cpu")
    needed = trace.peak_bytes * (1 if is_gpu else trace.num_ranks)
    whose = "one rank" if is_gpu or trace.num_ranks == 1 else f"{trace.num_ranks} ranks"
    found = f"{whose}: {needed / GIB:.2f} of {memory_bytes / GIB:.2f} GiB"
    do = "a smaller batch (--global-batch), a smaller --micro-batch, --precision bf16, or fewer ranks"
    if needed > memory_bytes:
        return failure("fits", found, "less than there is", do)
    if needed > TIGHT * memory_bytes:
        return warning("fits", found, f"{TIGHT:.0%} or less", do)
    return ok("fits", found)
