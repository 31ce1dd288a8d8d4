"""Whether a workload fits on this machine: what a short trace of one rank says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ranks.hardware.doctor.finding import Finding, failure, note, ok, warning
from ranks.hardware.forecast.host import host_bound_s
from ranks.hardware.forecast.memory_need import TIGHT, MemoryNeed
from ranks.hardware.forecast.trace import Trace
from ranks.hardware.units import rate
from ranks.watch.lines import size

GIB = 2**30
WAITS = 0.2
"""Share of an iteration spent on loading, above which a warning is given."""
LEAST_WAIT = 0.01
"""A smaller share of an iteration is no wait for data."""
HOST_SLOWER = 1.05
"""From which factor on too few cores of the host are a warning."""


@dataclass(frozen=True)
class WorkloadFacts:
    """What a short run of one rank has shown."""

    trace: Trace | None
    """None where `need`, what one rank needs, is more than there is, or on the CPU nearly all of it."""
    need: MemoryNeed | None
    memory_bytes: int
    """What torch may hold on one GPU, or what the ranks of a CPU machine may hold together."""
    ran_out: bool = False
    """The recorded run ran out of memory and went on with smaller passes."""
    checkpoint_bytes: int = 0
    """Of its largest checkpoint; 0: it saved none."""


@dataclass(frozen=True)
class RunPlace:
    """Where the run will be."""

    num_ranks: int
    device: str
    cores: int
    runs_dir: str
    free_bytes: int
    """Of the disk of the runs folder."""
    most_checkpoints: int
    """That are there at a time."""


def judge_workload(found: WorkloadFacts, place: RunPlace) -> Iterator[Finding]:
    """Speed, memory, loading, the host's cores and room for checkpoints."""
    trace = found.trace
    if trace is not None:
        kind, number = next(iter(trace.items.items()), ("iterations", 1.0))
        speed = f"{rate(number / trace.work_s)} {kind}/s"
        yield ok("workload", f"an iteration takes {trace.work_s:.3g} s on {place.device}, {speed}")
    yield judge_memory(found, place)
    if trace is None:
        return
    yield judge_loading(trace, place)
    if trace.host_cpu_s is not None:
        yield judge_host(trace, trace.host_cpu_s, place)
    yield judge_room(found.checkpoint_bytes, place)


def judge_memory(found: WorkloadFacts, place: RunPlace) -> Finding:
    """Whether the ranks fit, and the largest micro-batch that does."""
    trace, need, memory_bytes = found.trace, found.need, found.memory_bytes
    sharing = place.num_ranks if place.device.startswith("cpu") else 1
    peak = max(trace.peak_bytes if trace else 0.0, need.peak_bytes if need else 0.0)
    whose = "one rank" if sharing == 1 else f"{sharing} ranks"
    said = f"{whose}: {sharing * peak / GIB:.2f} of {memory_bytes / GIB:.2f} GiB"
    do = "a smaller batch (--global-batch), a smaller --micro-batch, --precision bf16, or fewer ranks"
    fitting = "; the micro-batch that fits is unknown, because its passes cannot be made smaller"
    if need is not None:
        passes = need.pass_items * need.bytes_per_item / GIB
        said += f" ({need.fixed_bytes / GIB:.2f} held, {passes:.2f} for a pass of {need.pass_items:,} items)"
        largest = need.largest_pass(TIGHT * memory_bytes / sharing)
        largest = min(largest, need.pass_items // 2) if found.ran_out else largest
        do = f"--micro-batch {largest}" if largest else "fewer ranks, a smaller model, or more memory"
        fitting = f"; --micro-batch {largest} fits"
    if found.ran_out:
        return failure("fits", f"{said}; a pass ran out of memory and was split", "less than there is", do)
    if sharing * peak > memory_bytes:
        return failure("fits", said, "less than there is", do)
    if sharing * peak > TIGHT * memory_bytes:
        said += "" if trace else "; its speed was not measured, because the doctor needs memory too"
        return warning("fits", said, f"{TIGHT:.0%} or less", do)
    return ok("fits", said + fitting)


def judge_loading(trace: Trace, place: RunPlace) -> Finding:
    """What loading can deliver against what the device consumes.

    Without workers on the CPU a rank loads and computes in turn, so both rates are known. Where loading goes on behind
    the work, it delivers as many items as an iteration takes in, if the rank waits for them, and else more than that.
    """
    kind, number = next(iter(trace.items.items()), ("iterations", 1.0))
    in_turn_s, behind_s = (trace.phases_s.get(name, 0.0) for name in ("data", "data_wait"))
    waits_s = in_turn_s + behind_s
    share = waits_s / max(trace.work_s, 1e-12)
    consumes = f"{rate(number / max(trace.work_s - waits_s, 1e-12))} {kind}/s"
    if place.device.startswith("cpu") and in_turn_s > behind_s:
        delivers = rate(number / in_turn_s)
    else:
        delivers = ("" if share > LEAST_WAIT else "at least ") + rate(number / trace.work_s)
    said = f"it delivers {delivers}, and the device can consume {consumes}; {share:.0%} of an iteration waits for data"
    if share <= WAITS:
        return ok("loading", said)
    do = "prepare the data once, load less for each item, or let workers read ahead (stream(..., workers=4))"
    return warning("loading", said, f"{WAITS:.0%} or less", do)


def judge_host(trace: Trace, cpu_s: float, place: RunPlace) -> Finding:
    """Whether the cores of this machine suffice for all its ranks."""
    needed = place.num_ranks * cpu_s / trace.work_s
    ranks = "one rank keeps" if place.num_ranks == 1 else f"{place.num_ranks} ranks keep"
    said = f"{ranks} {needed:.1f} of {place.cores} CPU cores busy"
    slower = host_bound_s(cpu_s, place.num_ranks, place.cores) / trace.work_s
    if slower <= HOST_SLOWER:
        return ok("host", said)
    do = "fewer workers or environments for each rank, fewer ranks, or a machine with more cores"
    found = f"{said}: an iteration takes {slower:.1f} times as long as that of a rank alone"
    return warning("host", found, f"{needed:.0f} cores", do)


def judge_room(checkpoint_bytes: int, place: RunPlace) -> Finding:
    """Whether the disk has room for the checkpoints that will be kept. A state's large arrays in kept files, such as
    those of a replay window, grow with the run and are not in it."""
    if not checkpoint_bytes:
        return note("checkpoints", "their size is unknown: the dry run saved none", "give --checkpoint-gb")
    needed = place.most_checkpoints * checkpoint_bytes
    said = f"{place.runs_dir}: {size(place.free_bytes)} free; a checkpoint takes {size(checkpoint_bytes)}"
    expected = f"{size(needed)}, for {place.most_checkpoints} of them"
    if place.free_bytes >= needed:
        return ok("checkpoints", f"{said}, {place.most_checkpoints} of them {size(needed)}")
    return failure("checkpoints", said, expected, "free space, or name another disk: --runs-dir FOLDER")
