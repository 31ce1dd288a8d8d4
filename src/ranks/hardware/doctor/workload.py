"""Whether a workload fits on this machine: what a short trace of one rank says."""

from __future__ import annotations

from collections.abc import Iterator

from ranks.hardware.doctor.finding import Finding, failure, ok, warning
from ranks.hardware.forecast.memory_need import MemoryNeed
from ranks.hardware.forecast.trace import Trace

GIB = 2**30
TIGHT, WAITS = 0.9, 0.2
"""Shares of the memory in use, and of an iteration spent on loading, above which a warning is given."""


def judge_workload(
    trace: Trace | None,
    need: MemoryNeed | None,
    num_ranks: int,
    device: str,
    memory_bytes: int,
    *,
    ran_out: bool = False,
) -> Iterator[Finding]:
    """`trace`: of one of `num_ranks` ranks; None where `need`, what one rank needs, is more than there is.
    `memory_bytes`: what torch may hold on one GPU, or what the ranks of a CPU machine may hold together. `ran_out`:
    the recorded run ran out of memory and went on with smaller passes."""
    if trace is not None:
        kind, number = next(iter(trace.items.items()), ("iterations", 1.0))
        speed = f"{number / trace.work_s:,.4g} {kind}/s"
        yield ok("workload", f"an iteration takes {trace.work_s:.3g} s on {device}, {speed}")
    yield _memory(trace, need, num_ranks, device, memory_bytes, ran_out)
    if trace is None:
        return
    loading = trace.phases_s.get("data", 0.0) / max(trace.work_s, 1e-12)
    found = f"{loading:.0%} of an iteration waits for data"
    if loading > WAITS:
        yield warning("loading", found, f"{WAITS:.0%} or less", "prepare the data once, or load less for each item")
    else:
        yield ok("loading", found)


def _memory(
    trace: Trace | None, need: MemoryNeed | None, num_ranks: int, device: str, memory_bytes: int, ran_out: bool
) -> Finding:
    sharing = num_ranks if device.startswith("cpu") else 1
    peak = max(trace.peak_bytes if trace else 0.0, need.peak_bytes if need else 0.0)
    whose = "one rank" if sharing == 1 else f"{sharing} ranks"
    found = f"{whose}: {sharing * peak / GIB:.2f} of {memory_bytes / GIB:.2f} GiB"
    do = "a smaller batch (--global-batch), a smaller --micro-batch, --precision bf16, or fewer ranks"
    if need is not None:
        passes = need.pass_items * need.bytes_per_item / GIB
        found += f" ({need.fixed_bytes / GIB:.2f} held, {passes:.2f} for a pass of {need.pass_items:,} items)"
        largest = need.largest_pass(TIGHT * memory_bytes / sharing)
        largest = min(largest, need.pass_items // 2) if ran_out else largest
        do = f"--micro-batch {largest}" if largest else "fewer ranks, a smaller model, or more memory"
    if ran_out:
        return failure("fits", f"{found}; a pass ran out of memory and was split", "less than there is", do)
    if sharing * peak > memory_bytes:
        return failure("fits", found, "less than there is", do)
    if sharing * peak > TIGHT * memory_bytes:
        return warning("fits", found, f"{TIGHT:.0%} or less", do)
    return ok("fits", found)
