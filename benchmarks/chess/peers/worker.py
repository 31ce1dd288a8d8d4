"""One side of a comparison: a process that prepares once and then measures each time it is asked.

It prints one JSON line when it is ready (or what is missing). Then it reads the seconds to measure
from stdin, one line for each round, and answers each with one JSON line. While the other sides
measure, it waits and uses no processor. It uses only the standard library, since each side runs in
the environment of its own library.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata

Work = Callable[[], Mapping[str, float]]
"""Does one piece of work and says how much it was: `done` games or simulations, and what else is to
be added up; `aside_s` is time that does not count."""
Prepared = tuple[Work, Mapping[str, object]]
"""The work, and the information to print."""


def version(distribution: str) -> str:
    """'rust-chess 0.4.3'. ModuleNotFoundError where it is not installed."""
    return f"{distribution} {metadata.version(distribution)}"


def keep_to(cores: str) -> None:
    """Let this process use only these cores ('0' or '0,1'), before a library counts them; on Linux
    only."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})


def serve(prepare: Callable[[], Prepared]) -> None:
    """Prepare, say so, and measure for as many seconds as each line on stdin asks."""
    start = time.perf_counter()
    try:
        work, info = prepare()
        work()  # compiles, fills caches
    except ImportError as missing:
        print(json.dumps({"missing": str(missing)}), flush=True)
        return
    print(json.dumps({**info, "prepare_s": round(time.perf_counter() - start, 2)}), flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(work, float(line))), flush=True)


def measure(work: Work, at_least_s: float) -> dict[str, float]:
    """Whole pieces of work until the time is over: their sums, their number, seconds, and seconds
    of processor time."""
    start, start_cpu = time.perf_counter(), time.process_time()
    sums: dict[str, float] = {"pieces": 0}
    while not sums["pieces"] or time.perf_counter() - start < at_least_s:
        for name, amount in {"pieces": 1, **work()}.items():
            sums[name] = sums.get(name, 0) + amount
    aside_s = sums.pop("aside_s", 0.0)
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
    return {**sums, "seconds": wall_s - aside_s, "cpu_seconds": cpu_s - aside_s}
