"""The clock of a side that plays on for ever: it measures while it is asked to, and waits in between.

A side prints one JSON line when it is ready (or what is missing). Then it reads the seconds to measure from stdin, one
line for each round, plays that long, and answers with one JSON line. Its games go on from round to round. Only the
standard library, since each side runs in the environment of its own library.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import metadata


class Pace:
    """`add` what was done after each piece of work; it answers and waits where a round is over."""

    def __init__(self) -> None:
        self._began = self._start = time.perf_counter()
        self._start_cpu = time.process_time()
        self._slice_s = float("inf")
        self._sums: dict[str, float] = {}

    def ready(self, **info: object) -> None:
        """All is compiled and warm: say so, and wait for the first round."""
        print(json.dumps({**info, "prepare_s": round(time.perf_counter() - self._began, 2)}), flush=True)
        self._wait()

    def add(self, **done: float) -> None:
        """Count what was done; where the round is over, answer and wait for the next."""
        self.count(**done)
        if self.is_over():
            self.answer()

    def count(self, **done: float) -> None:
        for name, amount in done.items():
            self._sums[name] = self._sums.get(name, 0.0) + amount

    def is_over(self) -> bool:
        return time.perf_counter() - self._start >= self._slice_s

    def answer(self) -> None:
        """What was done in this round; then wait for the next."""
        seconds, cpu_s = time.perf_counter() - self._start, time.process_time() - self._start_cpu
        print(json.dumps({**self._sums, "seconds": seconds, "cpu_seconds": cpu_s}), flush=True)
        self._wait()

    def _wait(self) -> None:
        line = sys.stdin.readline()
        if not line:
            sys.stdout.flush()
            os._exit(0)
        self._slice_s, self._sums = float(line), {}
        self._start, self._start_cpu = time.perf_counter(), time.process_time()


def missing(error: ImportError) -> None:
    """Say that a library is not there."""
    print(json.dumps({"missing": str(error)}), flush=True)


def versions(*distributions: str) -> str:
    """'mctx 0.0.71, pgx 2.6.0'."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in distributions)


def keep_to(cores: str) -> None:
    """Let this process use only these cores ('0' or '0,1'), before a library counts them; on Linux only."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
